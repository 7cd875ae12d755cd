//! The Portuguese catalogue of what is said about a WhatsApp gateway, in the spelling of S2.14.
//! Deliberately absent: anything but words.

use teimoso_whatsapp::adapter::Declined;
use teimoso_whatsapp::{Error, ErrorKind, Facts, MessageId, SendOutcome, Unknown};

use super::super::Printable as P;
use super::{Whatsapp, details, is_elsewhere};

pub(super) fn text(line: &Whatsapp<'_>) -> String {
    match *line {
        Whatsapp::Failed { error } => format!("{}: {}{}", error.provider(), failed(error), details(error)),
        Whatsapp::Ended { outcome, facts } => ended(outcome, facts),
        Whatsapp::Interrupted { id } => {
            format!("interrompido: a mensagem pode ter sido enviada{}", under(id))
        }
        Whatsapp::NotListed { id } => {
            format!("nenhuma mensagem com o id {id} na lista; isso nao prova que nao foi enviada")
        }
        Whatsapp::ToScan => {
            "leia com o WhatsApp no celular: Dispositivos conectados, Conectar dispositivo".to_owned()
        }
        Whatsapp::AskForQr => "para conectar um celular, peca o codigo: teimoso whatsapp qr".to_owned(),
        Whatsapp::Saved { path } => format!("gravado em {}", P(path)),
        Whatsapp::LoggedOut => "desconectado".to_owned(),
    }
}

fn failed(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Declined(why) => declined(why),
        ErrorKind::Unsupported => "nao e possivel ali",
        _ if error.may_have_taken_effect() => "resultado desconhecido: pode ter sido feito; veja o status",
        ErrorKind::Unclear => unclear(error.status()),
        ErrorKind::NoAnswer => "sem resposta; o endereco esta certo, e o servidor no ar?",
    }
}

fn unclear(status: Option<u16>) -> &'static str {
    match status {
        Some(300..400) => "aponta para outro lugar, que nao e seguido; confira o endereco",
        Some(500..) => "o provedor falhou; tente mais tarde",
        _ => "a resposta nao foi entendida; o endereco e o do provedor?",
    }
}

fn declined(why: Declined) -> &'static str {
    match why {
        Declined::Authentication => "o token nao foi aceito; confira TEIMOSO_WHATSAPP_TOKEN ou o arquivo",
        Declined::NotFound => "essa instancia nao existe; confira o endereco e a instancia",
        Declined::Invalid => "o pedido nao foi aceito",
        Declined::NotReady => "ainda nao esta pronto; tente de novo daqui a pouco",
        Declined::AlreadyConnected => "ja conectado, nao ha codigo para ler",
        Declined::RateLimited => "pedidos demais; tente mais tarde",
        Declined::Limit => "um limite da conta, que esperar nao resolve",
        Declined::Failed => "o provedor diz que falhou",
    }
}

fn ended(outcome: &SendOutcome, facts: &Facts) -> String {
    let name = facts.name;
    match outcome {
        SendOutcome::Sent(sent) if sent.reconciled => {
            format!("{name}: enviada; a resposta se perdeu, e a mensagem foi encontrada")
        }
        SendOutcome::Sent(_) if facts.queues => {
            format!(
                "{name}: na fila; sai quando o celular estiver conectado, entao nao envie de novo enquanto isso"
            )
        }
        SendOutcome::Sent(_) => format!("{name}: enviada"),
        SendOutcome::NotSent { error, .. } => {
            let why = match error.kind() {
                ErrorKind::NoAnswer => "nada saiu desta maquina",
                _ => failed(error),
            };
            format!("{name}: nao enviada: {why}{}", details(error))
        }
        SendOutcome::Unknown { id, why, error } => format!(
            "{name}: resultado desconhecido: {}{}\n  {}",
            unknown(*why),
            details(error),
            advice(id.as_ref(), error, facts)
        ),
    }
}

fn unknown(why: Unknown) -> &'static str {
    match why {
        Unknown::NoAnswer(_) => "a mensagem pode ter sido enviada, e nenhuma resposta veio",
        Unknown::BodyLost => "a mensagem pode ter sido enviada, e a resposta foi cortada",
        Unknown::Unclear => "a mensagem pode ter sido enviada, e a resposta nao diz",
        Unknown::Earlier => "uma tentativa anterior pode ter sido enviada",
    }
}

fn advice(id: Option<&MessageId>, error: &Error, facts: &Facts) -> String {
    match (error.reconcile(), id) {
        (Some(id), _) => format!("descubra com: teimoso whatsapp find {id}"),
        (None, Some(id)) if facts.caller_id.allows_repeats() => {
            format!("veja a conversa; enviar de novo com o mesmo id e reconhecido: --id {id}")
        }
        _ if is_elsewhere(error) => {
            "aponta para outro lugar, que nao e seguido; confira o endereco e a conversa".to_owned()
        }
        _ => "veja a conversa antes de enviar de novo".to_owned(),
    }
}

fn under(id: Option<&MessageId>) -> String {
    id.map_or_else(String::new, |id| format!(", com o id {id}"))
}
