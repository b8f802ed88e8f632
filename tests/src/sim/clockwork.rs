//! A runtime whose clock jumps to the next timer as soon as nothing else is left to do.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{Sleep, sleep};

/// Turns of the tasks without time passing, up to 61 tasks each. More is no work, but a circle of tasks
/// that wake each other.
const TURNS_IN_AN_INSTANT: u32 = 1_000_000;

/// Runs `life` and every task that it spawns locally until all of them are over. `look` is called each
/// time that all tasks wait and no socket has anything for them, before the clock jumps on.
///
/// # Panics
/// When a task panics, when tasks keep each other awake, or when some are not over after `limit` of the
/// jumping clock.
pub fn run(limit: Duration, life: impl Future<Output = ()> + 'static, look: impl FnMut()) {
    count_panics();
    let before = PANICS.get();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    let tasks = LocalSet::new();
    tasks.spawn_local(life);
    runtime.expect("a runtime").block_on(async {
        let mut clockwork = Clockwork {
            tasks: Box::pin(tasks),
            limit: Box::pin(sleep(limit)),
            woken: Arc::default(),
            turns: 0,
            panics: before,
            look,
        };
        poll_fn(|cx| clockwork.poll(cx)).await;
    });
}

struct Clockwork<Look> {
    tasks: Pin<Box<LocalSet>>,
    limit: Pin<Box<Sleep>>,
    woken: Arc<Woken>,
    turns: u32,
    panics: usize,
    look: Look,
}

/// Whether a task has been woken since it was last asked, and who must hear of it.
#[derive(Default)]
struct Woken {
    since: AtomicBool,
    root: std::sync::Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.since.store(true, Ordering::Relaxed);
        if let Some(root) = &*self.root.lock().expect("nothing panics with the lock") {
            root.wake_by_ref();
        }
    }
}

impl<Look: FnMut()> Clockwork<Look> {
    /// The runtime looks at sockets and timers between two calls. When it was this that asked for the
    /// call, no time may pass; else it lets the clock jump.
    fn poll(&mut self, cx: &mut Context) -> Poll<()> {
        assert!(self.limit.as_mut().poll(cx).is_pending(), "tasks are left that nothing ends");
        *self.woken.root.lock().expect("nothing panics with the lock") = Some(cx.waker().clone());
        let woken = self.woken.since.swap(false, Ordering::Relaxed);
        if !woken && self.turns > 0 {
            self.turns = 0;
            (self.look)();
            return Poll::Pending;
        }
        self.turns += 1;
        assert!(self.turns < TURNS_IN_AN_INSTANT, "tasks wake each other for ever");
        let waker = Waker::from(self.woken.clone());
        let over = self.tasks.as_mut().poll(&mut Context::from_waker(&waker));
        assert_eq!(PANICS.get(), self.panics, "a task has panicked");
        cx.waker().wake_by_ref();
        over
    }
}

thread_local! {
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// A task's panic ends that task alone, so someone has to notice.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            print(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Instant;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::task::spawn_local;

    use super::*;

    #[test]
    fn hours_pass_at_once_and_no_byte_is_late() {
        let began = Instant::now();
        let instants = Rc::new(Cell::new(0));
        let life = async {
            let (mut near, mut far) = UnixStream::pair().unwrap();
            let virtually = tokio::time::Instant::now();
            spawn_local(async move {
                for _ in 0..5 {
                    sleep(Duration::from_secs(1800)).await;
                    near.write_all(&[1; 1000]).await.unwrap();
                }
            });
            let mut buffer = [0; 100];
            for second in [1800, 3600, 5400, 7200, 9000] {
                for _ in 0..10 {
                    far.read_exact(&mut buffer).await.unwrap();
                    assert_eq!(virtually.elapsed(), Duration::from_secs(second));
                }
            }
        };
        let seen = instants.clone();
        run(Duration::from_secs(10_000), life, move || seen.set(seen.get() + 1));
        assert_eq!(instants.get(), 5);
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    #[should_panic(expected = "tasks are left that nothing ends")]
    fn a_task_that_never_ends_is_found() {
        let life = async {
            spawn_local(std::future::pending::<()>());
        };
        run(Duration::from_secs(10), life, || ());
    }

    #[test]
    #[should_panic(expected = "a task has panicked")]
    fn a_panic_in_a_task_is_found() {
        let life = async {
            spawn_local(async { panic!("on purpose") });
            sleep(Duration::from_secs(1)).await;
        };
        run(Duration::from_secs(10), life, || ());
    }
}
