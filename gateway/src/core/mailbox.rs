//! Messages between cores, and to cores from the control plane.

use tokio::sync::mpsc;

/// The receiving end; it stays on its core.
pub struct Mailbox<T>(mpsc::Receiver<T>);

/// The sending end, for any thread.
pub struct Handle<T>(mpsc::Sender<T>);

/// A message that was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError<T> {
    /// The receiver is behind by the mailbox's whole bound.
    #[error("the mailbox is full")]
    Full(T),
    /// The receiver is gone.
    #[error("the mailbox is closed")]
    Closed(T),
}

/// A mailbox that holds at most `bound` messages (at least one).
#[must_use]
pub fn mailbox<T>(bound: usize) -> (Handle<T>, Mailbox<T>) {
    let (sender, receiver) = mpsc::channel(bound.max(1));
    (Handle(sender), Mailbox(receiver))
}

impl<T> Handle<T> {
    /// Leaves a message without waiting, as the media path must.
    ///
    /// # Errors
    /// The message, when it was not taken.
    pub fn post(&self, message: T) -> Result<(), PostError<T>> {
        self.0.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(message) => PostError::Full(message),
            mpsc::error::TrySendError::Closed(message) => PostError::Closed(message),
        })
    }

    /// Leaves a message, after waiting for room. For the control plane.
    ///
    /// # Errors
    /// The message, when the receiver is gone.
    pub async fn post_waiting(&self, message: T) -> Result<(), T> {
        self.0.send(message).await.map_err(|error| error.0)
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle(self.0.clone())
    }
}

impl<T> Mailbox<T> {
    /// Appends up to `limit` messages that are there, after waiting for the first; zero when all
    /// handles are gone. One wake-up so serves many messages.
    pub async fn next_many(&mut self, messages: &mut Vec<T>, limit: usize) -> usize {
        self.0.recv_many(messages, limit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::runtime::run;
    use crate::io::Backend;

    #[test]
    fn a_full_mailbox_gives_the_message_back_and_a_closed_one_too() {
        let (handle, mailbox) = mailbox(2);
        assert_eq!((handle.post(1), handle.post(2)), (Ok(()), Ok(())));
        assert_eq!(handle.post(3), Err(PostError::Full(3)));
        drop(mailbox);
        assert_eq!(handle.post(4), Err(PostError::Closed(4)));
    }

    #[test]
    fn other_threads_wake_the_core() {
        for backend in [Backend::Uring, Backend::Epoll] {
            if backend == Backend::Uring && crate::io::uring::probe().is_err() {
                continue;
            }
            let (handle, mut mailbox) = mailbox::<u32>(4);
            let posting = std::thread::spawn(move || {
                let control = tokio::runtime::Builder::new_current_thread().build().unwrap();
                control.block_on(async {
                    for n in 0..1000 {
                        handle.post_waiting(n).await.unwrap();
                    }
                });
            });
            let received = run(backend, None, async {
                let mut all = Vec::new();
                while mailbox.next_many(&mut all, 3).await > 0 {}
                all
            });
            assert_eq!(received.unwrap(), (0..1000).collect::<Vec<_>>());
            posting.join().unwrap();
        }
    }
}
