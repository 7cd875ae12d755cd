//! The Portuguese catalogue: S2.14's lines letter for letter, the rest in the same spelling.
//! Deliberately absent: anything but words.

use teimoso_retry::{Fate, GiveUp, WaitSource};

use super::request::milliseconds;
use super::{
    Diagnosing, FailedAttempt, Interrupted, LastWord, Message, Moving, Printable as P, Replaying, Requesting,
    Standing, StoreName,
};
use crate::sink::route::Answer;
use crate::units::human_wait;

#[expect(clippy::too_many_lines, reason = "a catalogue is one table: split, the compiler would miss a line")]
pub(super) fn text(message: &Message<'_>) -> String {
    match *message {
        Message::Ready { url, store } => format!("teimoso: ouvindo em {url}, {}", store_name(store)),
        Message::WorkersReady { store } => format!("teimoso: so o enviador, {}", store_name(store)),
        Message::SenderUp { url, redis: false } => format!("enviador de pe, ouvindo em {url}"),
        Message::SenderUp { url, redis: true } => format!("enviador de pe, ouvindo o Redis em {}", P(url)),
        Message::Draining { in_flight } => {
            format!("encerrando: {in_flight} tentativas em andamento; um segundo sinal sai na hora")
        }
        Message::Drained => "encerrado".to_owned(),
        Message::AttemptStarts { number, event, url } => {
            format!("-> tentativa {number} do evento {} para {}", P(event), P(url))
        }
        Message::Delivered { status } => format!("  entregue! HTTP {status}"),
        Message::DestinationFailed { status } => format!("  HTTP {status}: o destino falhou"),
        Message::OurError { status } => format!("  HTTP {status}: erro nosso, nao adianta repetir"),
        Message::Redirected { status, location: Some(location) } => {
            format!("  HTTP {status}: redirecionamento para {} nao e seguido", P(location))
        }
        Message::Redirected { status, location: None } => {
            format!("  HTTP {status}: redirecionamento nao e seguido")
        }
        Message::ConnectionFailed { reason } => format!("  falhou na conexao: {}", P(reason)),
        Message::Refused { reason, allow_flag } => {
            format!("  nao enviado: {}{}", P(reason), allow(allow_flag))
        }
        Message::Scheduled { wait, next, max } => {
            format!("  agendado para daqui a {} (tentativa {next} de {max})", human_wait(wait))
        }
        Message::GaveUp { attempts } => {
            format!("  desistiu depois de {attempts} {}", attempts_word(attempts.into()))
        }
        Message::Buried { reason } => format!("  morto: {}", P(reason)),
        Message::LanePaused { lane, until, why } => {
            format!("{} em pausa ate {until} ({})", P(lane), P(why))
        }
        Message::StoreFailing { sentence } => {
            format!("os dados falham, as entregas esperam: {}", P(sentence))
        }
        Message::StoreRecovered => "os dados voltaram".to_owned(),
        Message::LinesLeftOut { attempts } => format!("(mais {attempts} tentativas sem linha)"),
        Message::SinkReady { url } => format!("destino de teste: ouvindo em {url}"),
        Message::SinkRequest { method, path, webhook_id, attempt, answer } => {
            sink_request(method, path, webhook_id, attempt, answer)
        }
        Message::SinkStopped { count } => format!("destino de teste: {count} requisicoes recebidas"),
        Message::Waiting { delivery, state, attempts, max, next } => {
            format!("{}: {}, {attempts} de {max} tentativas feitas{}", P(delivery), P(state), due(next))
        }
        Message::Settled { delivery, standing, attempts } => {
            let word = attempts_word(attempts);
            format!("{}: {} depois de {attempts} {word}", P(delivery), standing_text(standing))
        }
        Message::ServerAway => "o servidor nao responde; esperando".to_owned(),
        Message::ServerBack => "o servidor voltou".to_owned(),
        Message::StoredOnly { directory } => {
            format!("guardado; sera entregue quando `teimoso serve --store {}` rodar", P(directory))
        }
        Message::DeliveryGoesOn { event } => {
            format!("sem esperar mais; o evento esta salvo: `teimoso events show {}` diz como esta", P(event))
        }
        Message::MayBeAccepted => {
            "interrompido: o que nao teve resposta pode ter sido aceito, `teimoso events list` diz".to_owned()
        }
        Message::NoDeliveries => "aceito, mas nenhum destino o quer: nada sera entregue".to_owned(),
        Message::BatchProgress { accepted, failed } => format!("{accepted} aceitos, {failed} recusados"),
        Message::LineRefused { line, reason } => format!("linha {line}: {}", P(reason)),
        Message::Replay(replay) => replaying(replay),
        Message::Doctor(doctor) => diagnosing(doctor),
        Message::Migrate(step) => moving(step),
        Message::Request(request) => requesting(request),
        Message::Forgejo(line) => line.text(super::Language::Portuguese),
        Message::Whatsapp(line) => line.text(super::Language::Portuguese),
        Message::AskToProceed => "continuar? [s/N] ".to_owned(),
        Message::NothingDone => "nada foi feito".to_owned(),
        Message::BulkProgress { done, of, failed } => format!("{done} de {of} feitos, {failed} falharam"),
        Message::ItemFailed { id, reason } => format!("{}: {}", P(id), P(reason)),
        Message::NothingToShow => "nada a mostrar".to_owned(),
        Message::MoreToShow { shown } => format!("{shown} mostrados, ha mais: aumente --limit"),
    }
}

fn store_name(store: StoreName<'_>) -> String {
    match store {
        StoreName::Embedded(directory) => format!("dados embutidos em {directory}"),
        StoreName::Memory => "dados na memoria".to_owned(),
        StoreName::Redis { found, durability } => {
            format!("dados no Redis em {}, durabilidade {durability}", P(found))
        }
    }
}

fn allow(flag: Option<&str>) -> String {
    flag.map_or_else(String::new, |flag| format!(" (permita com {flag})"))
}

fn replaying(replay: Replaying<'_>) -> String {
    match replay {
        Replaying::Plan { count, ambiguous: 0 } => replay_plan(count),
        Replaying::Plan { count, ambiguous } => format!(
            "{}; ambiguas de fora: {ambiguous} (repetir pode dobrar o efeito: diga o id ou --reason ambiguous)",
            replay_plan(count)
        ),
        Replaying::Progress { done, of, failed } => {
            format!("{done} de cerca de {of} reenviadas, {failed} falharam")
        }
        Replaying::Ended { cancelled: false, done, failed } => {
            format!("reenvio terminado: {done} reenviadas, {failed} falharam")
        }
        Replaying::Ended { cancelled: true, done, failed } => {
            format!("reenvio cancelado: {done} reenviadas, {failed} falharam")
        }
        Replaying::GoesOn { job, directory: None } => {
            format!("o reenvio continua sem este comando; pare com `teimoso dead replay --cancel {}`", P(job))
        }
        Replaying::GoesOn { job, directory: Some(directory) } => format!(
            "o reenvio continua quando `teimoso serve --store {0}` rodar; pare com \
             `teimoso dead replay --cancel {1} --store {0}`",
            P(directory),
            P(job)
        ),
    }
}

fn diagnosing(diagnosing: Diagnosing) -> String {
    match diagnosing {
        Diagnosing::Looked { done, of } => format!("{done} de cerca de {of} entregas examinadas"),
        Diagnosing::NotCounted => {
            "os contadores nao foram comparados: ha movimento demais; olhe de novo quando houver menos"
                .to_owned()
        }
        Diagnosing::Sound => "nada esta errado".to_owned(),
        Diagnosing::Found { found: 1, healing: false, .. } => {
            "1 coisa esta errada; --heal conserta o que tem conserto".to_owned()
        }
        Diagnosing::Found { found, healing: false, .. } => {
            format!("{found} coisas estao erradas; --heal conserta o que tem conserto")
        }
        Diagnosing::Found { found: 1, healed, healing: true } => {
            format!("1 coisa estava errada, {healed} consertada")
        }
        Diagnosing::Found { found, healed, healing: true } => {
            format!("{found} coisas estavam erradas, {healed} consertadas")
        }
    }
}

fn moving(moving: Moving<'_>) -> String {
    match moving {
        Moving::Listening { seconds } => format!("verificando que nenhum servidor esta em uso: {seconds} s"),
        Moving::Leases { in_flight } => {
            format!("esperando o prazo de um servidor que se foi: {in_flight} em andamento")
        }
        Moving::Carried { done, of } => format!("{done} de {of} entregas movidas"),
        Moving::Counted { done, of } => format!("{done} de {of} entregas contadas no destino"),
        Moving::Done { from } => format!(
            "tudo foi movido; {} ainda tem tudo: nao inicie um servidor la, ou tudo sera entregue duas vezes",
            P(from)
        ),
    }
}

fn requesting(request: Requesting<'_>) -> String {
    match request {
        Requesting::Retry { attempt, wait, source } => {
            let by = match source {
                WaitSource::Schedule => "",
                WaitSource::RetryAfter => " (Retry-After)",
            };
            format!("{} — retry em {}ms{by}", failed(attempt), milliseconds(wait))
        }
        Requesting::GaveUp { attempt, why } => format!("{} — {}", failed(attempt), gave_up(why)),
        Requesting::Ended { word, attempts, reason, key } => ended(word, attempts, reason, key),
        Requesting::NotFollowed { status, followed } => {
            format!("HTTP {status}: nao seguido, depois de {followed} seguidos")
        }
        Requesting::Interrupted { when, number, effective, tainted, key } => {
            let known = match (when, effective, tainted) {
                (Interrupted::During, true, _) => "a requisicao pode ter surtido efeito",
                (Interrupted::Before, true, true) => "uma tentativa anterior pode ter surtido efeito",
                (Interrupted::Before, true, false) => "nada surtiu efeito",
                (_, false, _) => "o metodo nao pede efeito nenhum",
            };
            let unknown = effective && (tainted || when == Interrupted::During);
            let when = match when {
                Interrupted::During => "durante a",
                Interrupted::Before => "na espera antes da",
            };
            let look = if unknown { look_first(key) } else { String::new() };
            format!("teimoso: interrompido {when} tentativa {number}: {known}{look}")
        }
    }
}

fn failed(attempt: FailedAttempt<'_>) -> String {
    let FailedAttempt { tag, method, path, number, max, .. } = attempt;
    let what = what(attempt);
    format!("[{tag}] {} {} falhou (tentativa {number}/{max}): {what}", P(method), P(path))
}

fn what(attempt: FailedAttempt<'_>) -> String {
    let reason = attempt.reason.map_or_else(String::new, |reason| format!(": failed to {}", P(reason)));
    let status = attempt.status.map_or_else(String::new, |status| format!("HTTP {status}"));
    match attempt.fate {
        Fate::NeverSent(_) => format!("nao enviado{reason}"),
        Fate::NotProcessed(_) => format!("recusado pelo destino{reason}"),
        Fate::Answered if attempt.may_have_taken_effect => {
            format!("{status}, que pode ter surtido efeito{reason}")
        }
        Fate::Answered => format!("{status}{reason}"),
        Fate::BodyLost => format!("{status}, o corpo se perdeu{reason}"),
        Fate::Ambiguous(_) if attempt.may_have_taken_effect => format!("pode ter surtido efeito{reason}"),
        Fate::Ambiguous(_) => format!("sem resposta{reason}"),
        Fate::Refused(_) => format!("nao enviado, recusado{reason}"),
    }
}

fn gave_up(why: GiveUp) -> &'static str {
    match why {
        GiveUp::AttemptsExhausted | GiveUp::BudgetExhausted => "acabaram as tentativas",
        GiveUp::DeadlineExceeded => "acabou o tempo",
        GiveUp::RetryAfterBeyondCap => "o destino pede mais espera do que a politica permite",
        GiveUp::Ambiguous | GiveUp::NotReplaySafe => {
            "nao repetido: repetir nao e seguro sem a marca (--idempotent)"
        }
        GiveUp::TlsCertificate => "nao repetido: o certificado seria o mesmo",
        GiveUp::PermanentStatus | GiveUp::Redirect | GiveUp::EndpointGone | GiveUp::Refused(_) => {
            "nao adianta repetir"
        }
    }
}

fn ended(word: LastWord, attempts: u32, reason: Option<&str>, key: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(": failed to {}", P(reason)));
    let made = format!("depois de {attempts} {}", attempts_word(attempts.into()));
    match word {
        LastWord::Unknown => format!(
            "teimoso: desfecho desconhecido {made}: a requisicao pode ter surtido efeito, e nao veio resposta \
             inteira{reason}{}",
            look_first(key)
        ),
        LastWord::RanOut => format!("teimoso: desistiu {made}; nada surtiu efeito{reason}"),
        LastWord::Failed => format!("teimoso: falhou {made}; nada surtiu efeito{reason}"),
    }
}

fn look_first(key: Option<&str>) -> String {
    match key {
        None => "\n  olhe do outro lado antes de enviar de novo".to_owned(),
        Some(key) => {
            format!("\n  onde chaves valem, e seguro enviar de novo com --idempotency-key {}", P(key))
        }
    }
}

fn due(next: Option<(&str, &str)>) -> String {
    next.map_or_else(String::new, |(at, why)| format!(", a proxima em {} ({})", P(at), P(why)))
}

fn replay_plan(count: u64) -> String {
    if count == 1 {
        "1 entrega morta para reenviar".to_owned()
    } else {
        format!("{count} entregas mortas para reenviar")
    }
}

fn attempts_word(attempts: u64) -> &'static str {
    if attempts == 1 { "tentativa" } else { "tentativas" }
}

fn standing_text(standing: Standing<'_>) -> String {
    match standing {
        Standing::Delivered(Some(status)) => format!("entregue (HTTP {status})"),
        Standing::Delivered(None) => "entregue".to_owned(),
        Standing::Dead(reason) => format!("morta ({})", P(reason)),
        Standing::Cancelled => "cancelada".to_owned(),
    }
}

fn sink_request(method: &str, path: &str, id: Option<&str>, attempt: Option<u64>, answer: Answer) -> String {
    let id = id.map_or_else(String::new, |id| format!(" {}", P(id)));
    let attempt = attempt.map_or_else(String::new, |number| format!(" tentativa {number}"));
    format!("{method} {}{id}{attempt} -> {}", P(path), answer_text(answer))
}

fn answer_text(answer: Answer) -> String {
    match answer {
        Answer::Status(code) => code.to_string(),
        Answer::Redirect => "302 para /ok".to_owned(),
        Answer::Unavailable { retry_after_seconds } => {
            format!("503, tente de novo em {retry_after_seconds} s")
        }
        Answer::Late(wait) => format!("200 em {} ms", wait.as_millis()),
        Answer::Cut => "200, corpo cortado".to_owned(),
        Answer::Hang => "sem resposta".to_owned(),
        Answer::Reset => "conexao derrubada".to_owned(),
    }
}
