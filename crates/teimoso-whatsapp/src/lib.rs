//! WhatsApp gateways behind one connector, which never sends a message twice by itself.
//!
//! Nine providers speak nine dialects of the same six operations: connect, status, QR code, log out, send text, send
//! media. An [`Adapter`] describes the requests of one of them and how to read its answers, and does nothing. The
//! [`Connector`] does it: it sends, repeats, decides and explains, the same way for all of them.
//!
//! A message that arrives twice is worse than an error that is seen (S3.2). A send therefore ends in one of three
//! ways, [`SendOutcome`]: sent, not sent with the proof of it, or unknown, which is never sent again by itself.
//!
//! ```
//! use teimoso_whatsapp::{Connector, Recipient, Secret, SendOptions, SendOutcome, Settings, Text, provider};
//! # use teimoso_whatsapp::testkit::Double;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let double = Double::of("waha");
//! # let server = double.url();
//! let connector = Connector::builder(
//!     provider("waha")?,
//!     Settings { server: Some(&server), ..Settings::new(Secret::new("s3cret")?) },
//! )
//! .build()?;
//!
//! let text = Text::new(Recipient::parse("5511999998888")?, "pedido pago")?;
//! match connector.send_text(&text, &SendOptions::default()).await {
//!     SendOutcome::Sent(sent) => println!("sent as {:?}", sent.id),
//!     SendOutcome::NotSent { proof, error } => println!("not sent ({}): {error}", proof.name()),
//!     SendOutcome::Unknown { why, error, .. } => println!("look before you repeat ({}): {error}", why.name()),
//! }
//! # assert_eq!(double.sends().len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! What may be repeated belongs to the operation and not to its HTTP verb: a `GET` that disconnects is a write, a
//! lookup by `POST` is a read. Reads are repeated by the preset `connector` of [`teimoso_http`]; writes only when their
//! caller marks them ([`Repeat::Idempotent`]), and a send moreover only where the provider carries an id by which a
//! repetition is recognised.
//!
//! Deliberately absent: sentences for people, groups and lists of recipients (one call, one recipient), receiving
//! messages, and any state on disk.

mod account;
pub mod adapter;
mod connector;
mod error;
mod media;
mod message;
mod providers;
mod qr;
mod redact;
mod status;
#[cfg(feature = "testkit")]
pub mod testkit;

pub use account::{Account, InvalidAccount, Secret, Settings};
pub use adapter::{Adapter, CallerId, Facts, Found, Instance};
pub use connector::{
    ATTEMPT_TIMEOUT, Connector, ConnectorBuilder, InvalidConnector, LOOKUPS_MAX, NotSent, Repeat,
    SEND_TIMEOUT, SendOptions, SendOutcome, Sent, Unknown,
};
pub use error::{Error, ErrorKind, Operation};
pub use media::{DOCUMENT_BYTES_MAX, MEDIA_BYTES_MAX, Media, MediaKind};
pub use message::{InvalidMessage, MessageId, Recipient, TEXT_CHARS_MAX, Text};
pub use providers::{PROVIDERS, UnknownProvider, provider};
pub use qr::{Qr, UnreadableQr};
pub use status::{Connection, State, Status};
pub use teimoso_http as client;
