//! How the control plane reaches the cores: a message to each, and a bounded wait for its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use weir_protocol::stream_name::StreamName;

use crate::admin::model::CoreReport;
use crate::admin::{Control, Unanswered};
use crate::core::connection::core_of;
use crate::core::letter::{self, Letter};
use crate::core::mailbox::Handle;

/// The admin side's way to the cores. The admin listener bounds its waits.
#[derive(Clone)]
pub struct Cores {
    pub mailboxes: Vec<Handle<Letter>>,
    pub stopping: Arc<AtomicBool>,
}

impl Cores {
    async fn ask<T>(
        &self,
        mailbox: &Handle<Letter>,
        question: impl FnOnce(oneshot::Sender<T>) -> letter::Control,
    ) -> Result<T, Unanswered> {
        let (reply, answer) = oneshot::channel();
        let letter = Letter::Control(question(reply));
        mailbox.post_waiting(letter).await.map_err(|_| Unanswered)?;
        answer.await.map_err(|_| Unanswered)
    }

    /// Tells every core to stop. A core that cannot even take this message is given up.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        for mailbox in &self.mailboxes {
            let _ = mailbox.post(Letter::Control(letter::Control::Stop));
        }
    }
}

impl Control for Cores {
    async fn reports(&self) -> Result<Vec<CoreReport>, Unanswered> {
        let mut reports = Vec::with_capacity(self.mailboxes.len());
        for mailbox in &self.mailboxes {
            reports.push(self.ask(mailbox, letter::Control::Report).await?);
        }
        Ok(reports)
    }

    async fn kick_client(&self, id: u64) -> Result<bool, Unanswered> {
        match self.mailboxes.get(core_of(id).0) {
            Some(mailbox) => {
                self.ask(mailbox, |reply| letter::Control::KickClient { id, reply }).await
            }
            None => Ok(false),
        }
    }

    async fn kick_stream(&self, name: StreamName) -> Result<bool, Unanswered> {
        // Whoever owns it knows; the others say no.
        let mut kicked = false;
        for mailbox in &self.mailboxes {
            let name = name.clone();
            kicked |=
                self.ask(mailbox, |reply| letter::Control::KickStream { name, reply }).await?;
        }
        Ok(kicked)
    }

    fn ready(&self) -> bool {
        !self.stopping.load(Ordering::Relaxed)
    }
}
