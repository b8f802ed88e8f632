//! `make demo`, as a newcomer runs it: from one command to a moving picture.

use std::process::Command;
use std::time::Duration;

use weir_e2e::browser::{self, Job};
use weir_e2e::{Process, Scratch, tools, wait_until};

#[test]
fn the_demo_plays_in_a_browser_and_stops() {
    let scratch = Scratch::new();
    let mut command = Command::new("python3");
    command.arg("-u").arg(tools::root().join("gateway/demo.py")).arg(tools::gateway_binary());
    for listener in ["--rtmp", "--http", "--admin"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    let mut demo = Process::start("demo", &mut command, scratch.path());
    let page = wait_until("an address to open", Duration::from_secs(15), || {
        demo.assert_running();
        let log = demo.log();
        Some(log.split_once("Open  ")?.1.lines().next()?.trim().to_owned())
    });
    wait_until("a status line of the stream on air", Duration::from_secs(30), || {
        demo.log().contains("live/demo live").then_some(())
    });
    let _viewing = browser::play_smoothly(&Job::new("page-ll", page), 6, 30.0);
    demo.signal("INT");
    assert!(demo.wait(Duration::from_secs(5)).success(), "{}", demo.log());
}
