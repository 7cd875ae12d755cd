//! Doubles of the providers over real sockets, each made of its fixture: what it is asked, and what it answers. Behind
//! the feature `testkit`. Deliberately absent: any knowledge of a provider outside its fixture, and tokio.

mod double;
mod fixture;
mod wire;

pub use double::{Double, Fault};
pub use fixture::{AnswerCase, CODE, Fixture, ID, NUMBER, RequestCase, TEXT, TOKEN, media, text};
pub use wire::{Asked, Reply};
