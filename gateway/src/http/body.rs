//! The body of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Frame, SizeHint};

use super::flv::FlvBody;
use super::slices::Slices;

/// The body of any response.
pub enum Body {
    Full(Slices),
    /// A live stream without end.
    Flv(Box<FlvBody>),
}

impl Body {
    pub fn empty() -> Self {
        Self::Full(Slices::default())
    }
}

impl http_body::Body for Body {
    type Data = Slices;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Slices>, Infallible>>> {
        match self.get_mut() {
            Self::Full(slices) if slices.is_empty() => Poll::Ready(None),
            Self::Full(slices) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(slices))))),
            Self::Flv(flv) => flv.poll(cx).map(|slices| slices.map(|s| Ok(Frame::data(s)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(slices) if slices.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(slices) => SizeHint::with_exact(slices.len() as u64),
            Self::Flv(_) => SizeHint::default(),
        }
    }
}
