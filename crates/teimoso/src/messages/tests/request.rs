//! The lines of requests that are repeated, in both languages.

use teimoso_retry::{Fate, GiveUp, Proof, Refusal, WaitSource, Why};

use super::*;

fn attempt(fate: Fate, status: Option<u16>, reason: Option<&str>, taints: bool) -> FailedAttempt<'_> {
    FailedAttempt {
        tag: "request",
        method: "POST",
        path: "/orders",
        number: 1,
        max: 3,
        fate,
        status,
        reason,
        may_have_taken_effect: taints,
    }
}

fn said(request: Requesting<'_>, english: &str, portuguese: &str) {
    golden(Message::Request(request), english, portuguese);
}

#[test]
fn s1_8_a_retry_is_told_in_the_form_that_is_given() {
    let attempt = FailedAttempt {
        tag: "forgejo-api",
        method: "GET",
        path: "/api/v1/pulls/7",
        number: 1,
        max: 4,
        fate: Fate::Answered,
        status: Some(503),
        reason: None,
        may_have_taken_effect: false,
    };
    let wait = Duration::from_micros(312_900);
    said(
        Requesting::Retry { attempt, wait, source: WaitSource::Schedule },
        "[forgejo-api] GET /api/v1/pulls/7 failed (attempt 1/4): HTTP 503 — retry in 312ms",
        "[forgejo-api] GET /api/v1/pulls/7 falhou (tentativa 1/4): HTTP 503 — retry em 312ms",
    );
    said(
        Requesting::Retry { attempt, wait: Duration::from_secs(2), source: WaitSource::RetryAfter },
        "[forgejo-api] GET /api/v1/pulls/7 failed (attempt 1/4): HTTP 503 — retry in 2000ms (Retry-After)",
        "[forgejo-api] GET /api/v1/pulls/7 falhou (tentativa 1/4): HTTP 503 — retry em 2000ms (Retry-After)",
    );
}

#[test]
fn every_fate_has_its_words() {
    let reason = Some("do\u{7} it");
    let rows = [
        (
            attempt(Fate::NeverSent(Proof::Connect), None, reason, false),
            "not sent: failed to do\\u{7} it",
            "nao enviado: failed to do\\u{7} it",
        ),
        (
            attempt(Fate::NotProcessed(teimoso_retry::Nack::GoAway), None, reason, false),
            "declined by the peer: failed to do\\u{7} it",
            "recusado pelo destino: failed to do\\u{7} it",
        ),
        (attempt(Fate::Answered, Some(404), None, false), "HTTP 404", "HTTP 404"),
        (
            attempt(Fate::Answered, Some(503), None, true),
            "HTTP 503, which may have taken effect",
            "HTTP 503, que pode ter surtido efeito",
        ),
        (
            attempt(Fate::BodyLost, Some(200), reason, true),
            "HTTP 200, its body was lost: failed to do\\u{7} it",
            "HTTP 200, o corpo se perdeu: failed to do\\u{7} it",
        ),
        (
            attempt(Fate::Ambiguous(Why::Closed), None, reason, true),
            "may have taken effect: failed to do\\u{7} it",
            "pode ter surtido efeito: failed to do\\u{7} it",
        ),
        (
            attempt(Fate::Ambiguous(Why::Closed), None, reason, false),
            "no response: failed to do\\u{7} it",
            "sem resposta: failed to do\\u{7} it",
        ),
        (
            attempt(Fate::Refused(Refusal::TooLarge), None, reason, false),
            "not sent, refused: failed to do\\u{7} it",
            "nao enviado, recusado: failed to do\\u{7} it",
        ),
    ];
    for (attempt, english, portuguese) in rows {
        said(
            Requesting::GaveUp { attempt, why: GiveUp::PermanentStatus },
            &format!("[request] POST /orders failed (attempt 1/3): {english} — repeating is pointless"),
            &format!("[request] POST /orders falhou (tentativa 1/3): {portuguese} — nao adianta repetir"),
        );
    }
}

#[test]
fn the_end_of_the_attempts_has_its_reason() {
    let rows = [
        (GiveUp::AttemptsExhausted, "no retries left", "acabaram as tentativas"),
        (GiveUp::DeadlineExceeded, "no time left", "acabou o tempo"),
        (
            GiveUp::RetryAfterBeyondCap,
            "the peer asks for a longer wait than the policy allows",
            "o destino pede mais espera do que a politica permite",
        ),
        (
            GiveUp::NotReplaySafe,
            "not repeated: not safe to send twice unless marked (--idempotent)",
            "nao repetido: repetir nao e seguro sem a marca (--idempotent)",
        ),
        (
            GiveUp::TlsCertificate,
            "not repeated: the certificate would be the same",
            "nao repetido: o certificado seria o mesmo",
        ),
    ];
    for (why, english, portuguese) in rows {
        let attempt = attempt(Fate::Answered, Some(500), None, false);
        said(
            Requesting::GaveUp { attempt, why },
            &format!("[request] POST /orders failed (attempt 1/3): HTTP 500 — {english}"),
            &format!("[request] POST /orders falhou (tentativa 1/3): HTTP 500 — {portuguese}"),
        );
    }
}

#[test]
fn the_last_word_says_whether_it_may_have_happened_and_what_to_do() {
    let ended = |word, attempts, reason, key| Requesting::Ended { word, attempts, reason, key };
    said(
        ended(LastWord::Unknown, 1, None, None),
        "teimoso: outcome unknown after 1 attempt: the request may have taken effect, and no whole response came\n  \
         look at the other side before you send it again",
        "teimoso: desfecho desconhecido depois de 1 tentativa: a requisicao pode ter surtido efeito, e nao veio \
         resposta inteira\n  olhe do outro lado antes de enviar de novo",
    );
    said(
        ended(LastWord::Unknown, 3, Some("wait"), Some("k-1")),
        "teimoso: outcome unknown after 3 attempts: the request may have taken effect, and no whole response came: \
         failed to wait\n  where keys are honoured it is safe to send it again with --idempotency-key k-1",
        "teimoso: desfecho desconhecido depois de 3 tentativas: a requisicao pode ter surtido efeito, e nao veio \
         resposta inteira: failed to wait\n  onde chaves valem, e seguro enviar de novo com --idempotency-key k-1",
    );
    said(
        ended(LastWord::RanOut, 3, None, None),
        "teimoso: gave up after 3 attempts; nothing has taken effect",
        "teimoso: desistiu depois de 3 tentativas; nada surtiu efeito",
    );
    said(
        ended(LastWord::Failed, 1, Some("trust it"), None),
        "teimoso: failed after 1 attempt; nothing has taken effect: failed to trust it",
        "teimoso: falhou depois de 1 tentativa; nada surtiu efeito: failed to trust it",
    );
    said(
        Requesting::NotFollowed { status: 302, followed: 2 },
        "HTTP 302: not followed, after 2 that were",
        "HTTP 302: nao seguido, depois de 2 seguidos",
    );
}

#[test]
fn an_interruption_says_what_is_known() {
    let cut =
        |when, effective, tainted| Requesting::Interrupted { when, number: 2, effective, tainted, key: None };
    said(
        cut(Interrupted::During, true, false),
        "teimoso: interrupted during attempt 2: the request may have taken effect\n  \
         look at the other side before you send it again",
        "teimoso: interrompido durante a tentativa 2: a requisicao pode ter surtido efeito\n  \
         olhe do outro lado antes de enviar de novo",
    );
    said(
        cut(Interrupted::Before, true, true),
        "teimoso: interrupted in the wait before attempt 2: an earlier attempt may have taken effect\n  \
         look at the other side before you send it again",
        "teimoso: interrompido na espera antes da tentativa 2: uma tentativa anterior pode ter surtido efeito\n  \
         olhe do outro lado antes de enviar de novo",
    );
    said(
        cut(Interrupted::Before, true, false),
        "teimoso: interrupted in the wait before attempt 2: nothing has taken effect",
        "teimoso: interrompido na espera antes da tentativa 2: nada surtiu efeito",
    );
    said(
        cut(Interrupted::During, false, false),
        "teimoso: interrupted during attempt 2: its method asks for no effect",
        "teimoso: interrompido durante a tentativa 2: o metodo nao pede efeito nenhum",
    );
}
