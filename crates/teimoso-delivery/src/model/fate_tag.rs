//! The numbers that stand for fates in every store. Never reused, never renumbered.

use teimoso_retry::{Fate, Nack, Proof, Refusal, Why};

const TAGS: &[(u8, Fate)] = &[
    (1, Fate::NeverSent(Proof::Dns)),
    (2, Fate::NeverSent(Proof::Connect)),
    (3, Fate::NeverSent(Proof::TlsHandshake)),
    (4, Fate::NeverSent(Proof::TlsCertificate)),
    (5, Fate::NeverSent(Proof::NoConnection)),
    (6, Fate::NeverSent(Proof::HandedBack)),
    (7, Fate::NeverSent(Proof::ZeroBytesWritten)),
    (20, Fate::NotProcessed(Nack::RefusedStream)),
    (21, Fate::NotProcessed(Nack::GoAway)),
    (30, Fate::Answered),
    (31, Fate::BodyLost),
    (40, Fate::Ambiguous(Why::Timeout)),
    (41, Fate::Ambiguous(Why::Closed)),
    (42, Fate::Ambiguous(Why::Reset)),
    (43, Fate::Ambiguous(Why::Protocol)),
    (44, Fate::Ambiguous(Why::Cancelled)),
    (45, Fate::Ambiguous(Why::Other)),
    (50, Fate::Refused(Refusal::InvalidDestination)),
    (51, Fate::Refused(Refusal::BlockedAddress)),
    (52, Fate::Refused(Refusal::TooLarge)),
];

/// The number of a fate.
pub fn of(fate: Fate) -> u8 {
    let found = TAGS.iter().find(|(_, known)| *known == fate);
    found.map_or(45, |(tag, _)| *tag)
}

/// The fate of a number; an unknown one proves nothing, so it is ambiguous.
pub fn to(tag: u8) -> Fate {
    let found = TAGS.iter().find(|(known, _)| *known == tag);
    found.map_or(Fate::Ambiguous(Why::Other), |(_, fate)| *fate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_unique_and_lead_back() {
        for (at, (tag, fate)) in TAGS.iter().enumerate() {
            assert_eq!(to(of(*fate)), *fate);
            assert!(TAGS[at + 1..].iter().all(|(other, _)| other != tag));
        }
        assert_eq!(to(255), Fate::Ambiguous(Why::Other));
    }
}
