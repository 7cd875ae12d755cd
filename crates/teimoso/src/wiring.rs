//! Ports meet their real implementations here: the wire, the clock, chance, the stores, the lines on stderr. Deliberately absent: every decision.

pub mod api;
pub mod attempt_lines;
pub mod destinations;
pub mod direct;
pub mod dispatch;
pub mod engines;
pub mod entropy;
pub mod examine;
pub mod moving;
pub mod redis;
pub mod store;
