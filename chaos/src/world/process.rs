//! Senders as processes: started, killed, stopped, continued, and started again when they end by themselves, as a
//! supervisor of services would.

use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use crate::trouble::{Doing, Result, Trouble, locked};

/// One place in the fleet; who stands there changes with every death.
pub struct Member {
    /// What it is called in messages.
    pub name: &'static str,
    recipe: Box<dyn Fn() -> Command + Send + Sync>,
    child: Mutex<Option<Child>>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Member {
    /// A place that nobody stands in yet.
    pub fn new(name: &'static str, recipe: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self { name, recipe: Box::new(recipe), child: Mutex::default() }
    }

    /// Starts a process there.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self) -> Result<()> {
        let mut command = (self.recipe)();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        *locked(&self.child) = Some(command.spawn().doing(&format!("start {}", self.name))?);
        Ok(())
    }

    /// Who stands there.
    pub fn pid(&self) -> Option<u32> {
        locked(&self.child).as_ref().map(Child::id)
    }

    /// Ends it as a power cut would; whom it was.
    ///
    /// # Errors
    /// It cannot be killed.
    pub fn kill(&self) -> Result<Option<u32>> {
        let Some(mut child) = locked(&self.child).take() else { return Ok(None) };
        let pid = child.id();
        child.kill().doing(&format!("kill {}", self.name))?;
        child.wait().doing(&format!("wait for {}", self.name))?;
        Ok(Some(pid))
    }

    /// Starts it again if it ended by itself; whether it had.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn revive(&self) -> Result<bool> {
        let ended = match locked(&self.child).as_mut() {
            Some(child) => child.try_wait().doing(&format!("look at {}", self.name))?.is_some(),
            None => false,
        };
        if ended {
            self.start()?;
        }
        Ok(ended)
    }

    /// Takes the processor away from it, or gives it back (`STOP`, `CONT`); whom it was.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn signal(&self, name: &str) -> Result<Option<u32>> {
        let Some(pid) = self.pid() else { return Ok(None) };
        let order = [format!("-{name}"), pid.to_string()];
        let status = Command::new("kill").args(order).status().doing("send a signal")?;
        if status.success() {
            return Ok(Some(pid));
        }
        Err(Trouble::new(format!("{} does not take the signal {name}", self.name)))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(mut child) = locked(&self.child).take() {
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// The program without anything of this machine's environment that could change what it does.
pub fn clean(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TEIMOSO_") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("NO_COLOR", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_by_himself_is_started_again_and_who_was_killed_is_not() {
        let member = Member::new("a shell", || {
            let mut command = Command::new("sh");
            command.args(["-c", "exit 3"]);
            command
        });
        assert!(!member.revive().expect("nobody stands there"));
        member.start().expect("a shell runs");
        let first = member.pid();
        while !member.revive().expect("it can be looked at") {
            std::thread::yield_now();
        }
        assert_ne!(member.pid(), first);
        assert!(member.kill().expect("it is ours").is_some());
        assert_eq!((member.pid(), member.revive().expect("nobody")), (None, false));
    }
}
