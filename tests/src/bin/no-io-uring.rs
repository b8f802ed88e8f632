//! Runs a program where io_uring is forbidden, as in a container with Docker's default seccomp
//! profile: `no-io-uring PROGRAM ARGUMENT…`.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// `io_uring_setup` has the same number on all architectures.
const IO_URING_SETUP: i64 = 425;

/// What Docker's profile answers.
const EPERM: u32 = 1;

fn main() {
    let rules = BTreeMap::from([(IO_URING_SETUP, Vec::new())]);
    let architecture = std::env::consts::ARCH.try_into().expect("an architecture with seccomp");
    let refuse = SeccompAction::Errno(EPERM);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture);
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter(&program).expect("the filter is installed");
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().expect("a program to run");
    let error = Command::new(&program).args(arguments).exec();
    panic!("cannot run {}: {error}", program.display());
}
