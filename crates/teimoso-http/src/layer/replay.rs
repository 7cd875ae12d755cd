//! Request bodies that can be sent again, whatever their type; absent: how they are sent.

use bytes::{Buf, Bytes};
use http_body_util::{Empty, Full};

use crate::body::RequestBody;

/// A request body that may exist more than once.
pub trait Replay: Sized {
    /// Another body of the same bytes, or `None` if there is no other: such a request is sent once.
    fn replay(&self) -> Option<Self>;
}

/// Bodies whose clone is the same body.
macro_rules! replay_by_clone {
    ($($body:ty),+) => {
        $(impl Replay for $body {
            fn replay(&self) -> Option<Self> {
                Some(self.clone())
            }
        })+
    };
}

replay_by_clone!((), Bytes, String, Vec<u8>, &'static str, &'static [u8]);

impl<D: Buf + Clone> Replay for Full<D> {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<D> Replay for Empty<D> {
    fn replay(&self) -> Option<Self> {
        Some(Self::new())
    }
}

impl Replay for RequestBody {
    fn replay(&self) -> Option<Self> {
        Self::replay(self)
    }
}
