//! Golden lines in both languages.

use teimoso_whatsapp::{Sent, provider};

use super::*;
use crate::messages::Message;

fn said(line: Whatsapp<'_>, english: &str, portuguese: &str) {
    assert_eq!(Message::Whatsapp(line).text(Language::English), english);
    assert_eq!(Message::Whatsapp(line).text(Language::Portuguese), portuguese);
}

fn sent(name: &str, reconciled: bool, english: &str, portuguese: &str) {
    let outcome = SendOutcome::Sent(Sent { id: None, caller_id: None, reconciled });
    let facts = provider(name).expect("known").facts();
    said(Whatsapp::Ended { outcome: &outcome, facts }, english, portuguese);
}

#[test]
fn a_message_that_was_taken_says_by_whom_and_how() {
    sent("waha", false, "waha: sent", "waha: enviada");
    sent(
        "uazapi",
        true,
        "uazapi: sent; the answer was lost, and the message was found",
        "uazapi: enviada; a resposta se perdeu, e a mensagem foi encontrada",
    );
    sent(
        "z-api",
        false,
        "z-api: queued; it is sent when the phone is connected, so do not send it again meanwhile",
        "z-api: na fila; sai quando o celular estiver conectado, entao nao envie de novo enquanto isso",
    );
}

#[test]
fn the_other_lines() {
    let id = MessageId::parse("3EB0C0FFEE").expect("an id");
    said(
        Whatsapp::Interrupted { id: Some(&id) },
        "interrupted: the message may have been sent, under the id 3EB0C0FFEE",
        "interrompido: a mensagem pode ter sido enviada, com o id 3EB0C0FFEE",
    );
    said(
        Whatsapp::NotListed { id: &id },
        "no message with the id 3EB0C0FFEE is listed; that is no proof that it was not sent",
        "nenhuma mensagem com o id 3EB0C0FFEE na lista; isso nao prova que nao foi enviada",
    );
    said(Whatsapp::Saved { path: "a\u{7}.png" }, "written to a\\u{7}.png", "gravado em a\\u{7}.png");
    said(Whatsapp::LoggedOut, "logged out", "desconectado");
    said(
        Whatsapp::AskForQr,
        "if it is to be linked with a phone, ask for the code: teimoso whatsapp qr",
        "para conectar um celular, peca o codigo: teimoso whatsapp qr",
    );
}
