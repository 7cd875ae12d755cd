//! The Portuguese catalogue of what is said about a Forgejo, in the spelling of the other one.
//! Deliberately absent: anything but words.

use teimoso_forgejo::automerge::{Note, Outcome, Standing};
use teimoso_forgejo::{NextStep, Transition};

use super::super::Printable as P;
use super::{Forgejo, ForgejoWord, short};
use crate::units::human_wait;

pub(super) fn text(line: Forgejo<'_>) -> String {
    let Forgejo { about, word } = line;
    format!("{}: {}", P(about), words(word))
}

fn words(word: ForgejoWord<'_>) -> String {
    match word {
        ForgejoWord::Note(note) => noted(note),
        ForgejoWord::Waiting { standing, left } => {
            format!("{}; faltam {}", standing_words(standing), human_wait(left))
        }
        ForgejoWord::Ended(outcome) => ended(outcome),
        ForgejoWord::Stopped { ordered: true } => {
            "interrompido com a ordem de merge a caminho: confira o pull request".to_owned()
        }
        ForgejoWord::Stopped { ordered: false } => "interrompido: nada foi mesclado".to_owned(),
        ForgejoWord::Ready { already, ready } => {
            format!(
                "{}{}",
                if already { "ja esta " } else { "" },
                if ready { "pronto" } else { "em rascunho" }
            )
        }
        ForgejoWord::NoChecks => "sem checks".to_owned(),
        ForgejoWord::Moved { transition, label } => moved(transition, label),
        ForgejoWord::Claimed { by, already: false } => format!("reservada por {}", P(by)),
        ForgejoWord::Claimed { by, already: true } => format!("ja reservada por {}", P(by)),
        ForgejoWord::Taken { by } => format!("nao reservada: esta com {}", P(by)),
        ForgejoWord::ReleasedMeanwhile => {
            "nao reservada: foi liberada nesse meio tempo, reserve de novo".to_owned()
        }
        ForgejoWord::Closed => "nao reservada: esta fechada".to_owned(),
        ForgejoWord::Released { by } => format!("liberada; estava com {}", P(by)),
        ForgejoWord::Found { before: true } => "ja existia, com a mesma chave".to_owned(),
        ForgejoWord::Found { before: false } => "a resposta se perdeu, e a issue foi encontrada".to_owned(),
        ForgejoWord::MayExist { key, reason } => format!(
            "resultado desconhecido: a issue pode ter sido criada, e nao foi encontrada: {}\n  repita o comando com --op {}, \
             que procura antes de criar",
            P(reason),
            P(key)
        ),
        ForgejoWord::StoppedMaking { key } => format!(
            "interrompido: a issue pode ter sido criada\n  repita o comando com --op {}, que procura antes de criar",
            P(key)
        ),
        ForgejoWord::Applied { made, changed, same, dry_run } => {
            let would = if dry_run { "seriam " } else { "" };
            format!("regras: {made} {would}criadas, {changed} {would}alteradas, {same} iguais")
        }
    }
}

fn standing_words(standing: Standing) -> String {
    match standing {
        Standing::Beginning => "olhando".to_owned(),
        Standing::NoChecks => "ainda sem checks".to_owned(),
        Standing::Checks(counts) => {
            format!("{} de {} checks verdes, {} pendentes", counts.green, counts.all, counts.pending)
        }
        Standing::Confirming(counts) => {
            format!("{} de {} checks verdes, mais uma olhada antes do merge", counts.green, counts.all)
        }
        Standing::Mergeable => {
            "verde, mas o servidor ainda nao consegue mesclar: conflito, ou ainda verificando".to_owned()
        }
        Standing::Head => "o servidor nao encontra o commit".to_owned(),
        Standing::Merging => "esperando para ordenar o merge de novo".to_owned(),
    }
}

fn noted(note: &Note) -> String {
    match note {
        Note::Now(standing) => standing_words(*standing),
        Note::HeadMoved { from, to } => {
            format!("commit novo {} no lugar de {}: avaliacao recomeca", P(short(to)), P(short(from)))
        }
        Note::LookFailed { reason } => format!("nao deu para olhar, a espera continua: {}", P(reason)),
        Note::LooksAgain { failed: 1 } => "de volta depois de 1 olhada que falhou".to_owned(),
        Note::LooksAgain { failed } => format!("de volta depois de {failed} olhadas que falharam"),
        Note::Ordering { method, head } => format!("mesclando {} ({method})", P(short(head))),
        Note::NotYet { reason } => format!("ainda nao mesclado: {}", P(reason)),
        Note::Unclear { reason } => {
            format!("resposta incerta para a ordem, o pull request e lido antes de tudo: {}", P(reason))
        }
        Note::Scheduled => "o servidor agendou o merge; a vigia continua".to_owned(),
    }
}

fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Merged { commit, ordered, warning } => {
            let commit =
                commit.as_ref().map_or_else(String::new, |commit| format!(" em {}", P(short(commit))));
            let by = if *ordered { "" } else { ", por outra pessoa" };
            let warning = warning
                .as_ref()
                .map_or_else(String::new, |text| format!("\n  o servidor disse tambem: {}", P(text)));
            format!("mesclado{commit}{by}{warning}")
        }
        Outcome::MergedUnseen => "mesclado, diz o servidor; nao deu para conferir depois".to_owned(),
        Outcome::WouldMerge { method, head } => format!("mesclaria {} ({method})", P(short(head))),
        Outcome::WouldWait(standing) => format!("esperaria: {}", standing_words(*standing)),
        Outcome::ChecksFailed { contexts } => format!("nao mesclado, falhou: {}", P(&contexts.join(", "))),
        Outcome::NoChecks => {
            "nao mesclado: nao tem checks\n  para mesclar assim mesmo, use --allow-no-checks".to_owned()
        }
        Outcome::Closed => "nao mesclado: esta fechado".to_owned(),
        Outcome::Draft => {
            "nao mesclado: e um rascunho\n  marque como pronto com `teimoso forgejo pr ready`".to_owned()
        }
        Outcome::Conflict(reason) => format!("nao mesclado, conflito: {}", P(reason)),
        Outcome::NotMergeable(reason) => {
            format!("nao mesclado: conflito, ou o servidor ainda esta verificando: {}", P(reason))
        }
        Outcome::Blocked { reason, next_step: None, .. } => format!("nao mesclado: {}", P(reason)),
        Outcome::Blocked { reason, next_step: Some(step), .. } => {
            format!("nao mesclado: {}\n  {}", P(reason), next_step(*step))
        }
        Outcome::TimedOut { standing, trouble: None } => {
            format!("nao mesclado, o tempo acabou: {}", standing_words(*standing))
        }
        Outcome::TimedOut { trouble: Some(trouble), .. } => {
            format!("nao mesclado, o tempo acabou sem nada a vista: {}", P(trouble))
        }
        Outcome::Unknown { reason } => format!(
            "resultado desconhecido, a ordem de merge pode ter sido cumprida: {}\n  confira o pull request antes de repetir",
            P(reason)
        ),
    }
}

pub(super) fn next_step(step: NextStep) -> &'static str {
    match step {
        NextStep::NewToken => "crie um token novo nas configuracoes da sua conta",
        NextStep::Permission => "confira os escopos do token, e o que o usuario dele pode fazer",
        NextStep::SpellingOrAccess => "confira a grafia, e se o token pode ver o repositorio",
        NextStep::Unarchive => "um repositorio arquivado precisa ser desarquivado antes",
        NextStep::AddressOfRedirect => "informe como servidor o endereco para onde ele leva",
        NextStep::Address => "confira se o endereco do servidor esta certo, e se ele esta no ar",
        NextStep::Later => "tente de novo daqui a pouco",
    }
}

fn moved(transition: &Transition, label: &str) -> String {
    match transition {
        Transition::Already => format!("ja esta em {}", P(label)),
        Transition::Moved { from } if from.is_empty() => P(label).to_string(),
        Transition::Moved { from } => format!("{} (estava em {})", P(label), P(&from.join(", "))),
        Transition::NoSuchState { known } if known.is_empty() => {
            format!(
                "nao existe o label {}, nem outro do mesmo escopo\n  crie o label antes, ou informe outro escopo com --scope",
                P(label)
            )
        }
        Transition::NoSuchState { known } => {
            format!("nao existe o label {}; os estados sao {}", P(label), P(&known.join(", ")))
        }
    }
}
