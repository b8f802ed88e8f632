//! hyper's clock, on a core's timers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// Gives hyper the core's timers, for its limit on how long a request's head may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreTimer;

impl Timer for CoreTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Sleeping(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Sleeping(Box::pin(tokio::time::sleep_until(deadline.into()))))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleeping>() {
            Some(sleeping) => sleeping.get_mut().0.as_mut().reset(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

struct Sleeping(Pin<Box<tokio::time::Sleep>>);

impl Future for Sleeping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl Sleep for Sleeping {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::runtime::run;
    use crate::io::Backend;

    #[test]
    fn a_sleep_ends_at_its_deadline_and_can_be_moved() {
        run(Backend::Epoll, None, async {
            tokio::time::pause();
            let start = CoreTimer.now();
            CoreTimer.sleep(Duration::from_secs(3)).await;
            let mut sleep = CoreTimer.sleep_until(start + Duration::from_secs(1000));
            CoreTimer.reset(&mut sleep, start + Duration::from_secs(10));
            sleep.await;
            assert_eq!((CoreTimer.now() - start).as_secs(), 10);
        })
        .unwrap();
    }
}
