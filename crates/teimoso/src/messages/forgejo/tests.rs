//! Golden lines in both languages, side by side.

use teimoso_forgejo::{Counts, MergeMethod};

use super::*;
use crate::messages::Message;

fn golden(word: ForgejoWord<'_>, english: &str, portuguese: &str) {
    let message = Message::Forgejo(Forgejo { about: "acme/site#7", word });
    assert_eq!(message.text(Language::English), format!("acme/site#7: {english}"));
    assert_eq!(message.text(Language::Portuguese), format!("acme/site#7: {portuguese}"));
}

const COUNTS: Counts = Counts { all: 5, green: 3, pending: 2, failed: 0 };
const HEAD: &str = "1111111111111111";
const REASON: &str = "HTTP 502: bad";

fn now(standing: Standing, english: &str, portuguese: &str) {
    golden(ForgejoWord::Note(&Note::Now(standing)), english, portuguese);
}

#[test]
fn what_is_waited_for() {
    now(Standing::Beginning, "looking", "olhando");
    now(Standing::NoChecks, "no checks yet", "ainda sem checks");
    now(Standing::Checks(COUNTS), "3 of 5 checks green, 2 pending", "3 de 5 checks verdes, 2 pendentes");
    now(
        Standing::Confirming(Counts { all: 5, green: 5, pending: 0, failed: 0 }),
        "5 of 5 checks green, one more look before the merge",
        "5 de 5 checks verdes, mais uma olhada antes do merge",
    );
    now(
        Standing::Mergeable,
        "green, but the server cannot merge it yet: a conflict, or it is still checking",
        "verde, mas o servidor ainda nao consegue mesclar: conflito, ou ainda verificando",
    );
    now(Standing::Head, "the server cannot find the head commit", "o servidor nao encontra o commit");
    now(Standing::Merging, "waiting to order the merge again", "esperando para ordenar o merge de novo");
    golden(
        ForgejoWord::Waiting { standing: Standing::Checks(COUNTS), left: Duration::from_secs(2_520) },
        "3 of 5 checks green, 2 pending; 42m left",
        "3 de 5 checks verdes, 2 pendentes; faltam 42m",
    );
}

#[test]
fn what_happens_in_a_wait() {
    let head = HEAD.to_owned();
    let reason = || REASON.to_owned();
    let note =
        |note: &Note, english: &str, portuguese: &str| golden(ForgejoWord::Note(note), english, portuguese);
    note(
        &Note::HeadMoved { from: head.clone(), to: "2".repeat(16) },
        "new head 2222222222 instead of 1111111111: judged anew",
        "commit novo 2222222222 no lugar de 1111111111: avaliacao recomeca",
    );
    note(
        &Note::LookFailed { reason: reason() },
        "could not look, the wait goes on: HTTP 502: bad",
        "nao deu para olhar, a espera continua: HTTP 502: bad",
    );
    note(
        &Note::LooksAgain { failed: 1 },
        "in sight again after 1 look that failed",
        "de volta depois de 1 olhada que falhou",
    );
    note(
        &Note::LooksAgain { failed: 3 },
        "in sight again after 3 looks that failed",
        "de volta depois de 3 olhadas que falharam",
    );
    note(
        &Note::Ordering { method: MergeMethod::Squash, head },
        "merging 1111111111 (squash)",
        "mesclando 1111111111 (squash)",
    );
    note(
        &Note::NotYet { reason: reason() },
        "not merged yet: HTTP 502: bad",
        "ainda nao mesclado: HTTP 502: bad",
    );
    note(
        &Note::Unclear { reason: reason() },
        "no clear answer to the order, so the pull request is read first: HTTP 502: bad",
        "resposta incerta para a ordem, o pull request e lido antes de tudo: HTTP 502: bad",
    );
    note(
        &Note::Scheduled,
        "the server has scheduled the merge; the watch goes on",
        "o servidor agendou o merge; a vigia continua",
    );
}

fn ended(outcome: &Outcome, english: &str, portuguese: &str) {
    golden(ForgejoWord::Ended(outcome), english, portuguese);
}

#[test]
fn how_a_wait_ends_well() {
    let commit = Some("3".repeat(16));
    ended(
        &Outcome::Merged { commit: commit.clone(), ordered: true, warning: None },
        "merged as 3333333333",
        "mesclado em 3333333333",
    );
    ended(
        &Outcome::Merged { commit, ordered: false, warning: Some(REASON.to_owned()) },
        "merged as 3333333333, by somebody else\n  the server also said: HTTP 502: bad",
        "mesclado em 3333333333, por outra pessoa\n  o servidor disse tambem: HTTP 502: bad",
    );
    ended(
        &Outcome::MergedUnseen,
        "merged, says the server; it could not be looked at since",
        "mesclado, diz o servidor; nao deu para conferir depois",
    );
    ended(
        &Outcome::WouldMerge { method: MergeMethod::Merge, head: HEAD.to_owned() },
        "would merge 1111111111 (merge)",
        "mesclaria 1111111111 (merge)",
    );
    ended(
        &Outcome::WouldWait(Standing::NoChecks),
        "would wait: no checks yet",
        "esperaria: ainda sem checks",
    );
}

#[test]
fn how_a_wait_ends_otherwise() {
    let reason = || REASON.to_owned();
    ended(
        &Outcome::ChecksFailed { contexts: vec!["a".to_owned(), "b\u{1b}[2J".to_owned()] },
        "not merged, failed: a, b\\u{1b}[2J",
        "nao mesclado, falhou: a, b\\u{1b}[2J",
    );
    ended(
        &Outcome::NoChecks,
        "not merged: it has no checks\n  merge it all the same with --allow-no-checks",
        "nao mesclado: nao tem checks\n  para mesclar assim mesmo, use --allow-no-checks",
    );
    ended(&Outcome::Closed, "not merged: it is closed", "nao mesclado: esta fechado");
    ended(
        &Outcome::Draft,
        "not merged: it is a draft\n  mark it with `teimoso forgejo pr ready`",
        "nao mesclado: e um rascunho\n  marque como pronto com `teimoso forgejo pr ready`",
    );
    ended(
        &Outcome::Conflict(reason()),
        "not merged, a conflict: HTTP 502: bad",
        "nao mesclado, conflito: HTTP 502: bad",
    );
    ended(
        &Outcome::NotMergeable(reason()),
        "not merged: a conflict, or the server is still checking: HTTP 502: bad",
        "nao mesclado: conflito, ou o servidor ainda esta verificando: HTTP 502: bad",
    );
    ended(
        &Outcome::Blocked { unauthorized: false, reason: reason(), next_step: None },
        "not merged: HTTP 502: bad",
        "nao mesclado: HTTP 502: bad",
    );
    ended(
        &Outcome::Blocked { unauthorized: true, reason: reason(), next_step: Some(NextStep::NewToken) },
        "not merged: HTTP 502: bad\n  make a new token in the settings of your account",
        "nao mesclado: HTTP 502: bad\n  crie um token novo nas configuracoes da sua conta",
    );
    ended(
        &Outcome::TimedOut { standing: Standing::NoChecks, trouble: None },
        "not merged, time ran out: no checks yet",
        "nao mesclado, o tempo acabou: ainda sem checks",
    );
    ended(
        &Outcome::TimedOut { standing: Standing::NoChecks, trouble: Some(reason()) },
        "not merged, time ran out while nothing could be seen: HTTP 502: bad",
        "nao mesclado, o tempo acabou sem nada a vista: HTTP 502: bad",
    );
    ended(
        &Outcome::Unknown { reason: reason() },
        "outcome unknown, the order to merge may have been followed: HTTP 502: bad\n  look at the pull request before \
         you repeat it",
        "resultado desconhecido, a ordem de merge pode ter sido cumprida: HTTP 502: bad\n  confira o pull request \
         antes de repetir",
    );
}

#[test]
fn every_next_step_is_said_in_both_languages() {
    let rows = [
        (
            NextStep::Permission,
            "look at the scopes of the token, and at what its user may do",
            "confira os escopos do token, e o que o usuario dele pode fazer",
        ),
        (
            NextStep::SpellingOrAccess,
            "look at the spelling, and whether the token may see the repository",
            "confira a grafia, e se o token pode ver o repositorio",
        ),
        (
            NextStep::Unarchive,
            "an archived repository must be unarchived first",
            "um repositorio arquivado precisa ser desarquivado antes",
        ),
        (
            NextStep::AddressOfRedirect,
            "give the address that it leads to as the server's",
            "informe como servidor o endereco para onde ele leva",
        ),
        (
            NextStep::Address,
            "look whether the address of the server is right, and whether it is up",
            "confira se o endereco do servidor esta certo, e se ele esta no ar",
        ),
        (NextStep::Later, "try again in a while", "tente de novo daqui a pouco"),
    ];
    for (step, english, portuguese) in rows {
        assert_eq!(next_step(step, Language::English), english);
        assert_eq!(next_step(step, Language::Portuguese), portuguese);
    }
}

#[test]
fn what_a_signal_leaves() {
    golden(
        ForgejoWord::Stopped { ordered: false },
        "interrupted: nothing was merged",
        "interrompido: nada foi mesclado",
    );
    golden(
        ForgejoWord::Stopped { ordered: true },
        "interrupted while the order to merge was under way: look at the pull request",
        "interrompido com a ordem de merge a caminho: confira o pull request",
    );
    golden(
        ForgejoWord::StoppedMaking { key: "k" },
        "interrupted: the issue may have been made\n  repeat the command with --op k, which looks for it first",
        "interrompido: a issue pode ter sido criada\n  repita o comando com --op k, que procura antes de criar",
    );
}

#[test]
fn what_is_said_of_issues() {
    let pairs = [
        (ForgejoWord::Claimed { by: "ana", already: false }, "claimed by ana", "reservada por ana"),
        (ForgejoWord::Claimed { by: "ana", already: true }, "already claimed by ana", "ja reservada por ana"),
        (ForgejoWord::Taken { by: "ana" }, "not claimed: ana has it", "nao reservada: esta com ana"),
        (
            ForgejoWord::ReleasedMeanwhile,
            "not claimed: it was released meanwhile, claim it again",
            "nao reservada: foi liberada nesse meio tempo, reserve de novo",
        ),
        (ForgejoWord::Closed, "not claimed: it is closed", "nao reservada: esta fechada"),
        (ForgejoWord::Released { by: "ana" }, "released; ana had it", "liberada; estava com ana"),
        (
            ForgejoWord::Found { before: true },
            "was there already, under the same key",
            "ja existia, com a mesma chave",
        ),
        (
            ForgejoWord::Found { before: false },
            "the answer was lost, and the issue was found",
            "a resposta se perdeu, e a issue foi encontrada",
        ),
        (ForgejoWord::NoChecks, "no checks", "sem checks"),
        (ForgejoWord::Ready { already: false, ready: true }, "ready", "pronto"),
        (ForgejoWord::Ready { already: true, ready: false }, "already a draft", "ja esta em rascunho"),
    ];
    for (word, english, portuguese) in pairs {
        golden(word, english, portuguese);
    }
    golden(
        ForgejoWord::MayExist { key: "k", reason: REASON },
        "outcome unknown: the issue may have been made, and was not found: HTTP 502: bad\n  repeat the command with \
         --op k, which looks for it first",
        "resultado desconhecido: a issue pode ter sido criada, e nao foi encontrada: HTTP 502: bad\n  repita o comando \
         com --op k, que procura antes de criar",
    );
}

#[test]
fn what_is_said_of_statuses_and_rules() {
    let label = "status/ready";
    let moved = |transition: &Transition, english: &str, portuguese: &str| {
        golden(ForgejoWord::Moved { transition, label }, english, portuguese);
    };
    moved(&Transition::Already, "already status/ready", "ja esta em status/ready");
    moved(&Transition::Moved { from: vec![] }, "status/ready", "status/ready");
    moved(
        &Transition::Moved { from: vec!["done".to_owned()] },
        "status/ready (was done)",
        "status/ready (estava em done)",
    );
    moved(
        &Transition::NoSuchState { known: vec![] },
        "there is no label status/ready, nor any other of its scope\n  make it first, or name another scope with --scope",
        "nao existe o label status/ready, nem outro do mesmo escopo\n  crie o label antes, ou informe outro escopo com --scope",
    );
    moved(
        &Transition::NoSuchState { known: vec!["a".to_owned(), "b".to_owned()] },
        "there is no label status/ready; the statuses are a, b",
        "nao existe o label status/ready; os estados sao a, b",
    );
    golden(
        ForgejoWord::Applied { made: 1, changed: 2, same: 3, dry_run: false },
        "rules: 1 made, 2 changed, 3 the same",
        "regras: 1 criadas, 2 alteradas, 3 iguais",
    );
    golden(
        ForgejoWord::Applied { made: 1, changed: 2, same: 3, dry_run: true },
        "rules: 1 would be made, 2 would be changed, 3 the same",
        "regras: 1 seriam criadas, 2 seriam alteradas, 3 iguais",
    );
}
