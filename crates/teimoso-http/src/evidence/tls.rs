//! Every look into a failed TLS handshake, and its words for a person; absent: the handshake itself.

use std::fmt;
use std::io;

use rustls::{CertificateError, Error, InvalidMessage};
use teimoso_retry::Proof;

use super::{io_words, lower_first};
use crate::attempt::ErrorKind;

/// Reads a failed TLS handshake: no byte of the request was written, whatever it was.
pub(crate) fn of_handshake(error: &io::Error) -> (Proof, ErrorKind, String) {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let rejected = match tls {
        Some(Error::InvalidCertificate(reason)) => {
            format!("the peer's certificate is rejected: {}", certificate_words(reason))
        }
        Some(Error::NoCertificatesPresented) => "the peer sent no certificate".to_owned(),
        Some(other) => return (Proof::TlsHandshake, ErrorKind::TlsHandshake, handshake_words(other)),
        None => return (Proof::TlsHandshake, ErrorKind::TlsHandshake, stream_words(error)),
    };
    (Proof::TlsCertificate, ErrorKind::TlsCertificate, rejected)
}

fn certificate_words(reason: &CertificateError) -> String {
    use CertificateError as Reason;
    let words = match reason {
        Reason::UnknownIssuer => "it is signed by nobody who is trusted here",
        Reason::Expired | Reason::ExpiredContext { .. } => "it has expired, by this machine's clock",
        Reason::NotValidYet | Reason::NotValidYetContext { .. } => {
            "it is not valid yet, by this machine's clock"
        }
        Reason::NotValidForNameContext { expected, .. } => {
            return format!("it is not valid for the name {}", expected.to_str());
        }
        Reason::NotValidForName => "it is not valid for the name in the url",
        Reason::InvalidPurpose | Reason::InvalidPurposeContext { .. } => "it is not made for servers",
        Reason::BadSignature => "its signature is wrong",
        Reason::BadEncoding => "it cannot be read",
        Reason::Revoked => "it was revoked",
        other => return variant_words(other),
    };
    words.to_owned()
}

fn handshake_words(error: &Error) -> String {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the peer does not answer in tls; perhaps its port is for http".to_owned()
        }
        Error::InvalidMessage(what) => format!("the peer sent something malformed: {}", variant_words(what)),
        Error::AlertReceived(alert) => format!("the peer refused it: {}", variant_words(alert)),
        Error::PeerIncompatible(why) => format!("the peer's tls does not fit ours: {}", variant_words(why)),
        Error::PeerMisbehaved(why) => format!("the peer broke the rules of tls: {}", variant_words(why)),
        other => lower_first(&other.to_string()),
    }
}

fn stream_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the peer closed the connection".to_owned(),
        _ => io_words(error),
    }
}

/// The name of an enum's variant as words, for those that have no sentence: `NoKxGroupsInCommon` becomes `no kx groups
/// in common`.
fn variant_words(variant: &impl fmt::Debug) -> String {
    let text = format!("{variant:?}");
    let name = text.split(|char: char| !char.is_ascii_alphanumeric()).next().unwrap_or_default();
    let mut words = String::with_capacity(name.len() + 8);
    for char in name.chars() {
        if char.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(char.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, PeerIncompatible};

    use super::*;

    fn words(error: Error) -> String {
        of_handshake(&io::Error::other(error)).2
    }

    #[test]
    fn a_person_can_read_why_a_handshake_failed() {
        let rejected = |reason| words(Error::InvalidCertificate(reason));
        assert_eq!(
            rejected(CertificateError::UnknownIssuer),
            "the peer's certificate is rejected: it is signed by nobody who is trusted here"
        );
        assert_eq!(
            rejected(CertificateError::UnknownRevocationStatus),
            "the peer's certificate is rejected: unknown revocation status"
        );
        assert_eq!(
            words(Error::AlertReceived(AlertDescription::HandshakeFailure)),
            "the peer refused it: handshake failure"
        );
        assert_eq!(
            words(Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon)),
            "the peer's tls does not fit ours: no kx groups in common"
        );
        let plain = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(words(plain), "the peer does not answer in tls; perhaps its port is for http");
        let ended = of_handshake(&io::ErrorKind::UnexpectedEof.into());
        assert_eq!(ended.2, "the peer closed the connection");
    }
}
