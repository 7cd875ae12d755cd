//! Bodies of requests and responses; absent: the connections they travel over, and any decoding of what they hold.

mod gather;
mod request;
mod response;

pub use request::RequestBody;
pub use response::{BodyError, ResponseBody};

pub(crate) use gather::{BodyEnd, BodyRead, FrameRead, Frames, gather};
pub(crate) use request::BodyFailed;
pub(crate) use response::Pace;

/// What a body of the caller's may fail with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
