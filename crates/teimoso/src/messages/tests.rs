//! Golden lines in both languages: each message once, side by side.

mod request;

use super::*;

fn golden(message: Message<'_>, english: &str, portuguese: &str) {
    assert_eq!(message.text(Language::English), english);
    assert_eq!(message.text(Language::Portuguese), portuguese);
}

#[test]
fn s2_14_attempt_lines_letter_for_letter() {
    let url = "http://127.0.0.1:4000/teimoso";
    golden(
        Message::SenderUp { url: "redis://127.0.0.1:6379", redis: true },
        "sender up, listening on redis://127.0.0.1:6379",
        "enviador de pe, ouvindo o Redis em redis://127.0.0.1:6379",
    );
    golden(
        Message::SenderUp { url: "http://127.0.0.1:8080", redis: false },
        "sender up, listening on http://127.0.0.1:8080",
        "enviador de pe, ouvindo em http://127.0.0.1:8080",
    );
    golden(
        Message::AttemptStarts { number: 1, event: "evt_1789136700349", url },
        "-> attempt 1 of event evt_1789136700349 to http://127.0.0.1:4000/teimoso",
        "-> tentativa 1 do evento evt_1789136700349 para http://127.0.0.1:4000/teimoso",
    );
    golden(Message::Delivered { status: 200 }, "  delivered! HTTP 200", "  entregue! HTTP 200");
    golden(
        Message::DestinationFailed { status: 503 },
        "  HTTP 503: the destination failed",
        "  HTTP 503: o destino falhou",
    );
    golden(
        Message::Scheduled { wait: Duration::from_millis(2_900), next: 2, max: 5 },
        "  scheduled in 2.9s (attempt 2 of 5)",
        "  agendado para daqui a 2.9s (tentativa 2 de 5)",
    );
    golden(
        Message::OurError { status: 404 },
        "  HTTP 404: our error, repeating is pointless",
        "  HTTP 404: erro nosso, nao adianta repetir",
    );
    golden(
        Message::ConnectionFailed { reason: "connection refused" },
        "  connection failed: connection refused",
        "  falhou na conexao: connection refused",
    );
    golden(
        Message::GaveUp { attempts: 5 },
        "  gave up after 5 attempts",
        "  desistiu depois de 5 tentativas",
    );
}

#[test]
fn attempt_lines_beyond_s2() {
    golden(
        Message::Redirected { status: 302, location: Some("/ok") },
        "  HTTP 302: redirects to /ok are not followed",
        "  HTTP 302: redirecionamento para /ok nao e seguido",
    );
    golden(
        Message::Redirected { status: 304, location: None },
        "  HTTP 304: redirects are not followed",
        "  HTTP 304: redirecionamento nao e seguido",
    );
    golden(
        Message::Refused { reason: "127.0.0.1 is loopback", allow_flag: Some("--allow-net 127.0.0.0/8") },
        "  not sent: 127.0.0.1 is loopback (allow it with --allow-net 127.0.0.0/8)",
        "  nao enviado: 127.0.0.1 is loopback (permita com --allow-net 127.0.0.0/8)",
    );
    golden(Message::Buried { reason: "ambiguous" }, "  dead: ambiguous", "  morto: ambiguous");
    golden(Message::GaveUp { attempts: 1 }, "  gave up after 1 attempt", "  desistiu depois de 1 tentativa");
}

#[test]
fn lines_of_the_server_process() {
    let url = "http://127.0.0.1:8080";
    golden(
        Message::Ready { url, store: StoreName::Embedded("./teimoso-data") },
        "teimoso: listening on http://127.0.0.1:8080, store embedded at ./teimoso-data",
        "teimoso: ouvindo em http://127.0.0.1:8080, dados embutidos em ./teimoso-data",
    );
    golden(
        Message::Ready { url, store: StoreName::Memory },
        "teimoso: listening on http://127.0.0.1:8080, store in memory",
        "teimoso: ouvindo em http://127.0.0.1:8080, dados na memoria",
    );
    let found = "redis://127.0.0.1:6379/0 (redis 7.0.15, appendonly yes)";
    golden(
        Message::Ready { url, store: StoreName::Redis { found, durability: "fast" } },
        "teimoso: listening on http://127.0.0.1:8080, store redis at redis://127.0.0.1:6379/0 \
         (redis 7.0.15, appendonly yes), durability fast",
        "teimoso: ouvindo em http://127.0.0.1:8080, dados no Redis em redis://127.0.0.1:6379/0 \
         (redis 7.0.15, appendonly yes), durabilidade fast",
    );
    golden(
        Message::WorkersReady { store: StoreName::Redis { found: "redis://h:1/0", durability: "disk" } },
        "teimoso: workers only, store redis at redis://h:1/0, durability disk",
        "teimoso: so o enviador, dados no Redis em redis://h:1/0, durabilidade disk",
    );
    golden(
        Message::Draining { in_flight: 12 },
        "draining: 12 attempts in flight; a second signal exits at once",
        "encerrando: 12 tentativas em andamento; um segundo sinal sai na hora",
    );
    golden(Message::Drained, "drained", "encerrado");
    golden(
        Message::LanePaused { lane: "http://x", until: "2026-01-31T12:00:00Z", why: "breaker" },
        "http://x is paused until 2026-01-31T12:00:00Z (breaker)",
        "http://x em pausa ate 2026-01-31T12:00:00Z (breaker)",
    );
    golden(
        Message::StoreFailing { sentence: "the disk is full" },
        "the store fails, deliveries wait: the disk is full",
        "os dados falham, as entregas esperam: the disk is full",
    );
    golden(Message::StoreRecovered, "the store works again", "os dados voltaram");
}

#[test]
fn lines_of_an_examination() {
    let doctor = Message::Doctor;
    golden(
        doctor(Diagnosing::Looked { done: 2, of: 9 }),
        "2 of about 9 deliveries looked at",
        "2 de cerca de 9 entregas examinadas",
    );
    golden(
        doctor(Diagnosing::NotCounted),
        "the counters were not compared: too much moves; look again when there is less to do",
        "os contadores nao foram comparados: ha movimento demais; olhe de novo quando houver menos",
    );
    golden(doctor(Diagnosing::Sound), "nothing is wrong", "nada esta errado");
    golden(
        doctor(Diagnosing::Found { found: 3, healed: 0, healing: false }),
        "3 things are wrong; --heal puts right what can be put right",
        "3 coisas estao erradas; --heal conserta o que tem conserto",
    );
    golden(
        doctor(Diagnosing::Found { found: 1, healed: 0, healing: false }),
        "1 thing is wrong; --heal puts right what can be put right",
        "1 coisa esta errada; --heal conserta o que tem conserto",
    );
    golden(
        doctor(Diagnosing::Found { found: 1, healed: 1, healing: true }),
        "1 thing was wrong, 1 put right",
        "1 coisa estava errada, 1 consertada",
    );
    golden(
        doctor(Diagnosing::Found { found: 3, healed: 2, healing: true }),
        "3 things were wrong, 2 put right",
        "3 coisas estavam erradas, 2 consertadas",
    );
}

#[test]
fn lines_of_a_move() {
    let step = Message::Migrate;
    golden(
        step(Moving::Listening { seconds: 7 }),
        "making sure that no server is at work: 7 s",
        "verificando que nenhum servidor esta em uso: 7 s",
    );
    golden(
        step(Moving::Leases { in_flight: 3 }),
        "waiting for the leases of a server that is gone: 3 in flight",
        "esperando o prazo de um servidor que se foi: 3 em andamento",
    );
    golden(step(Moving::Carried { done: 1, of: 2 }), "1 of 2 deliveries moved", "1 de 2 entregas movidas");
    golden(
        step(Moving::Counted { done: 1, of: 2 }),
        "1 of 2 deliveries counted in the target",
        "1 de 2 entregas contadas no destino",
    );
    golden(
        step(Moving::Done { from: "./a" }),
        "everything has moved; ./a still has all of it: do not start a server on it, or all of it is delivered twice",
        "tudo foi movido; ./a ainda tem tudo: nao inicie um servidor la, ou tudo sera entregue duas vezes",
    );
}

#[test]
fn s2_11_the_sink_prints_a_line_per_request() {
    let request = |answer| Message::SinkRequest {
        method: "POST",
        path: "/teimoso",
        webhook_id: Some("evt_1"),
        attempt: Some(2),
        answer,
    };
    golden(
        request(Answer::Status(503)),
        "POST /teimoso evt_1 attempt 2 -> 503",
        "POST /teimoso evt_1 tentativa 2 -> 503",
    );
    golden(
        request(Answer::Hang),
        "POST /teimoso evt_1 attempt 2 -> no answer",
        "POST /teimoso evt_1 tentativa 2 -> sem resposta",
    );
    golden(
        request(Answer::Reset),
        "POST /teimoso evt_1 attempt 2 -> connection reset",
        "POST /teimoso evt_1 tentativa 2 -> conexao derrubada",
    );
    golden(
        Message::SinkRequest {
            method: "GET",
            path: "/ok",
            webhook_id: None,
            attempt: None,
            answer: Answer::Status(200),
        },
        "GET /ok -> 200",
        "GET /ok -> 200",
    );
    golden(
        Message::SinkReady { url: "http://127.0.0.1:4000" },
        "sink: listening on http://127.0.0.1:4000",
        "destino de teste: ouvindo em http://127.0.0.1:4000",
    );
}

#[test]
fn lines_of_the_commands() {
    golden(
        Message::Waiting { delivery: "dlv_1", state: "scheduled", attempts: 1, max: 5, next: None },
        "dlv_1: scheduled, 1 of 5 attempts made",
        "dlv_1: scheduled, 1 de 5 tentativas feitas",
    );
    let next = Some(("2026-01-31T12:00:00.000Z", "retry"));
    golden(
        Message::Waiting { delivery: "dlv_1", state: "scheduled", attempts: 1, max: 5, next },
        "dlv_1: scheduled, 1 of 5 attempts made, next at 2026-01-31T12:00:00.000Z (retry)",
        "dlv_1: scheduled, 1 de 5 tentativas feitas, a proxima em 2026-01-31T12:00:00.000Z (retry)",
    );
    golden(
        Message::Settled { delivery: "dlv_1", standing: Standing::Delivered(Some(200)), attempts: 3 },
        "dlv_1: delivered (HTTP 200) after 3 attempts",
        "dlv_1: entregue (HTTP 200) depois de 3 tentativas",
    );
    golden(
        Message::Settled { delivery: "dlv_1", standing: Standing::Dead("permanent_status"), attempts: 1 },
        "dlv_1: dead (permanent_status) after 1 attempt",
        "dlv_1: morta (permanent_status) depois de 1 tentativa",
    );
    golden(
        Message::ServerAway,
        "the server is out of reach; still waiting",
        "o servidor nao responde; esperando",
    );
    golden(Message::ServerBack, "the server is back", "o servidor voltou");
    golden(
        Message::StoredOnly { directory: "./d" },
        "stored; it is delivered once `teimoso serve --store ./d` runs",
        "guardado; sera entregue quando `teimoso serve --store ./d` rodar",
    );
    golden(
        Message::DeliveryGoesOn { event: "evt_1" },
        "no longer waiting; the event is safe: `teimoso events show evt_1` tells how it stands",
        "sem esperar mais; o evento esta salvo: `teimoso events show evt_1` diz como esta",
    );
    golden(
        Message::MayBeAccepted,
        "interrupted: what was not answered may have been accepted, `teimoso events list` tells",
        "interrompido: o que nao teve resposta pode ter sido aceito, `teimoso events list` diz",
    );
    golden(Message::AskToProceed, "proceed? [y/N] ", "continuar? [s/N] ");
}

#[test]
fn lines_of_a_replay() {
    golden(
        Message::Replay(Replaying::Plan { count: 12, ambiguous: 0 }),
        "12 dead deliveries to replay",
        "12 entregas mortas para reenviar",
    );
    golden(
        Message::Replay(Replaying::Plan { count: 1, ambiguous: 2 }),
        "1 dead delivery to replay; 2 ambiguous left out (a repeat might double the effect: name them by id or \
         --reason ambiguous)",
        "1 entrega morta para reenviar; ambiguas de fora: 2 (repetir pode dobrar o efeito: diga o id ou \
         --reason ambiguous)",
    );
    golden(
        Message::Replay(Replaying::Progress { done: 3, of: 9, failed: 1 }),
        "3 of about 9 replayed, 1 failed",
        "3 de cerca de 9 reenviadas, 1 falharam",
    );
    golden(
        Message::Replay(Replaying::Ended { cancelled: false, done: 3, failed: 1 }),
        "replay finished: 3 replayed, 1 failed",
        "reenvio terminado: 3 reenviadas, 1 falharam",
    );
    golden(
        Message::Replay(Replaying::Ended { cancelled: true, done: 3, failed: 0 }),
        "replay cancelled: 3 replayed, 0 failed",
        "reenvio cancelado: 3 reenviadas, 0 falharam",
    );
    golden(
        Message::Replay(Replaying::GoesOn { job: "rpl_1", directory: None }),
        "the replay goes on without this command; stop it with `teimoso dead replay --cancel rpl_1`",
        "o reenvio continua sem este comando; pare com `teimoso dead replay --cancel rpl_1`",
    );
    golden(
        Message::Replay(Replaying::GoesOn { job: "rpl_1", directory: Some("./d") }),
        "the replay goes on once `teimoso serve --store ./d` runs; stop it with \
         `teimoso dead replay --cancel rpl_1 --store ./d`",
        "o reenvio continua quando `teimoso serve --store ./d` rodar; pare com \
         `teimoso dead replay --cancel rpl_1 --store ./d`",
    );
}

#[test]
fn text_from_outside_cannot_steer_the_terminal() {
    assert_eq!(printable("a\u{1b}[2Jb\r\n\u{9b}é"), "a\\u{1b}[2Jb\\r\\n\\u{9b}é");
    assert_eq!(printable("a\u{202e}txt.exe\u{2066}é\u{feff}"), "a\\u{202e}txt.exe\\u{2066}é\\u{feff}");
    assert_eq!(printable("\u{ad}\u{200b}\u{2028}\u{e0041}"), "\\u{ad}\\u{200b}\\u{2028}\\u{e0041}");
    assert_eq!(printable("não, 文字, עברית, 👍, a\u{301}"), "não, 文字, עברית, 👍, a\u{301}");
    let line = Message::ConnectionFailed { reason: "\u{7}" }.text(Language::English);
    assert_eq!(line, "  connection failed: \\u{7}");
}

#[test]
fn the_first_variable_that_is_set_decides() {
    let language = |set: &[(&str, &str)]| {
        Language::from_environment(|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    };
    assert_eq!(language(&[]), Language::English);
    assert_eq!(language(&[("LANG", "pt_BR.UTF-8")]), Language::Portuguese);
    assert_eq!(language(&[("LANG", "pt_BR.UTF-8"), ("LC_MESSAGES", "C")]), Language::English);
    assert_eq!(language(&[("LC_ALL", ""), ("LANG", "pt_PT")]), Language::Portuguese);
    assert_eq!(language(&[("TEIMOSO_LANG", "pt-BR"), ("LC_ALL", "en_US")]), Language::Portuguese);
    assert_eq!(language(&[("LANG", "é")]), Language::English);
}

#[test]
fn the_flag_takes_two_names() {
    assert_eq!("pt-BR".parse(), Ok(Language::Portuguese));
    assert_eq!("en".parse(), Ok(Language::English));
    assert_eq!("fr".parse::<Language>(), Err("the languages are en and pt-BR".to_owned()));
}
