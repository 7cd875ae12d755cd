//! Who delivers: five places, one of them with the API, one behind the proxy, one that will be stopped.

pub mod naive;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::args::Which;
use crate::trouble::{Doing, Result, Trouble, locked};
use crate::world::process::{Member, clean};

/// How long an attempt may take, in both designs: the receiver hangs now and then.
pub const ATTEMPT: Duration = Duration::from_secs(4);

/// The places.
#[derive(Debug)]
pub struct Fleet {
    /// Those that are killed at random; the first has the API, where there is one.
    pub killed: Vec<Member>,
    /// The one whose way to Redis is the proxy.
    pub beyond: Member,
    /// The one that is stopped and continued.
    pub late: Member,
    /// Whoever stood in any of them.
    everyone: Arc<Mutex<Vec<u32>>>,
}

/// What processes are started with.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Which design.
    pub which: Which,
    /// The released binary.
    pub teimoso: PathBuf,
    /// The Redis.
    pub redis: String,
    /// The same beyond the proxy.
    pub proxied: String,
    /// Where the API is to listen.
    pub api_port: u16,
}

impl Recipe {
    /// That place's process.
    fn command(&self, redis: &str, api: bool) -> Result<Command> {
        match self.which {
            Which::Naive => {
                let mut command = clean(std::env::current_exe().doing("find this program")?);
                command.args(["naive", "--redis", redis]);
                Ok(command)
            }
            Which::Teimoso => {
                let mut command = clean(&self.teimoso);
                command.args(["serve", "--store", redis, "--policy", "webhook"]);
                command.args(["--allow-net", "127.0.0.0/8", "--attempt-lines", "off"]);
                command.args(["--attempt-timeout", &format!("{}s", ATTEMPT.as_secs())]);
                match api {
                    true => command.args(["--listen", &format!("127.0.0.1:{}", self.api_port)]),
                    false => command.arg("--workers-only"),
                };
                Ok(command)
            }
        }
    }

    fn place(&self, name: &'static str, redis: &str, api: bool) -> Result<Member> {
        // Looked up once: what is started later is started in the same way.
        self.command(redis, api)?;
        let (recipe, redis) = (self.clone(), redis.to_owned());
        Ok(Member::new(name, move || {
            recipe.command(&redis, api).unwrap_or_else(|_| Command::new(&recipe.teimoso))
        }))
    }
}

impl Fleet {
    /// Starts everyone.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start(recipe: &Recipe, everyone: Arc<Mutex<Vec<u32>>>) -> Result<Self> {
        let killed = vec![
            recipe.place("the sender with the API", &recipe.redis, true)?,
            recipe.place("the first sender", &recipe.redis, false)?,
            recipe.place("the second sender", &recipe.redis, false)?,
        ];
        let beyond = recipe.place("the sender behind the proxy", &recipe.proxied, false)?;
        let late = recipe.place("the sender that is stopped", &recipe.redis, false)?;
        let fleet = Self { killed, beyond, late, everyone };
        for member in fleet.members() {
            fleet.start_one(member)?;
        }
        Ok(fleet)
    }

    /// All places.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.killed.iter().chain([&self.beyond, &self.late])
    }

    /// Fills a place.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start_one(&self, member: &Member) -> Result<()> {
        member.start()?;
        locked(&self.everyone).extend(member.pid());
        Ok(())
    }

    /// Fills the places of those who ended by themselves; how many there were.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn revive(&self) -> Result<u64> {
        let mut revived = 0;
        for member in self.members() {
            if member.revive()? {
                locked(&self.everyone).extend(member.pid());
                revived += 1;
            }
        }
        Ok(revived)
    }
}

/// The binary: the one that was named, or the one beside this program.
///
/// # Errors
/// It is not there.
pub fn binary(named: Option<&Path>) -> Result<PathBuf> {
    let beside = std::env::current_exe().doing("find this program")?.with_file_name("teimoso");
    let path = named.map_or(beside, Path::to_owned);
    let missing = |_| Trouble::new(format!("no binary at {}; build it: just build", path.display()));
    path.canonicalize().map_err(missing)
}
