//! The scripts, each with the parts it shares with the others in front, and the calls made of them.
//!
//! Called by digest; a server that does not know one (restarted, failed over, flushed) is sent the text.

use std::sync::LazyLock;

use redis::{Cmd, cmd};

// Everything but the base is a function of its own: what it shares with the functions within is then passed on, which is
// cheap, instead of looked up anew for each of them, which took a good part of a small batch's time.
macro_rules! script {
    ($name:literal: $($file:literal),+) => {
        LazyLock::new(|| {
            let text = concat!(
                include_str!("../scripts/01_base.lua"),
                "return (function()\n",
                $(include_str!(concat!("../scripts/", $file))),+,
                "end)()\n"
            );
            Script { name: $name, text, digest: redis::Script::new(text).get_hash().to_owned() }
        })
    };
}

/// A script.
#[derive(Debug)]
pub(crate) struct Script {
    /// For messages.
    pub(crate) name: &'static str,
    text: &'static str,
    digest: String,
}

pub(crate) static CYCLE: LazyLock<Script> =
    script!("cycle": "02_lanes.lua", "03_rest.lua", "settle.lua", "recover.lua", "turns.lua", "cycle.lua");
pub(crate) static ACCEPT: LazyLock<Script> = script!("accept": "02_lanes.lua", "03_rest.lua", "accept.lua");
pub(crate) static TAKE: LazyLock<Script> = script!("take": "02_lanes.lua", "03_rest.lua", "take.lua");
pub(crate) static ADOPT: LazyLock<Script> = script!("adopt": "02_lanes.lua", "03_rest.lua", "adopt.lua");
pub(crate) static ORDER: LazyLock<Script> = script!("order": "02_lanes.lua", "03_rest.lua", "order.lua");
pub(crate) static JOB: LazyLock<Script> = script!("job": "02_lanes.lua", "03_rest.lua", "job.lua");
pub(crate) static STATS: LazyLock<Script> = script!("stats": "02_lanes.lua", "stats.lua");
pub(crate) static PEEK: LazyLock<Script> = script!("peek": "peek.lua");
pub(crate) static CARRY: LazyLock<Script> = script!("carry": "carry.lua");
pub(crate) static STAGE: LazyLock<Script> = script!("stage": "stage.lua");
pub(crate) static READ: LazyLock<Script> = script!("read": "02_lanes.lua", "03_rest.lua", "read.lua");
pub(crate) static DOCTOR: LazyLock<Script> = script!("doctor": "02_lanes.lua", "03_rest.lua", "doctor.lua");
pub(crate) static MOVE: LazyLock<Script> = script!("move": "02_lanes.lua", "03_rest.lua", "move.lua");

/// A call that can be made again.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    pub(crate) fn new(script: &'static Script, keys: Vec<String>) -> Self {
        Self { script, keys, arguments: Vec::new() }
    }

    pub(crate) fn arg(&mut self, argument: impl Into<Vec<u8>>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn number(&mut self, number: impl Into<i128>) -> &mut Self {
        self.arg(number.into().to_string())
    }

    /// By digest.
    pub(crate) fn by_digest(&self) -> Cmd {
        self.command("EVALSHA", &self.script.digest)
    }

    /// With the text, which the server then knows.
    pub(crate) fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}
