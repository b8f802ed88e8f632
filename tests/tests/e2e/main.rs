//! Black-box tests: the real binary, real encoders and real players, on both I/O backends.

/// Makes a test of each function, once per backend: `uring::name` and `epoll::name`.
macro_rules! on_both_backends {
    ($($name:ident),* $(,)?) => {
        mod uring {
            $(#[test] fn $name() { super::$name(weir_e2e::Backend::Uring); })*
        }
        mod epoll {
            $(#[test] fn $name() { super::$name(weir_e2e::Backend::Epoll); })*
        }
    };
}

mod admin;
mod command_line;
mod demo;
mod encoders;
mod http;
mod live;
mod obs;
mod players;
mod stop;
