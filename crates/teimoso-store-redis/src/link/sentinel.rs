//! Whoever the sentinels name as the master: asked before every connection, and listened to in between.
//!
//! A client pinned to the old address would talk to a server that lost its place; so each sentinel is subscribed to,
//! and when one changes its answer, every connection is dropped and whoever is named is asked for its role.
//! Deliberately absent: sentinels beyond those of the URL.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ProtocolVersion, PushInfo, PushKind, Value, cmd};
use teimoso_delivery::ports::{BoxFuture, Clock, Entropy};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::backoff::Backoff;
use super::failure::{Failure, Trouble};
use super::place::{Access, Host, Locate, Target, ask, connect};

/// A sentinel is asked this often for what its push should have said.
const CHECK: Duration = Duration::from_secs(3);

/// A group of sentinels and the master they watch.
pub(crate) struct Sentinels {
    hosts: Vec<Host>,
    master: String,
    /// To the sentinels, which have credentials of their own.
    access: Access,
    /// To the master.
    master_access: Access,
    /// Who is asked first: whoever answered last.
    first: AtomicUsize,
    named: Mutex<Option<Host>>,
    moves: watch::Sender<u64>,
}

impl Sentinels {
    pub(crate) fn new(hosts: Vec<Host>, master: String, access: Access, master_access: Access) -> Self {
        Self {
            hosts,
            master,
            access,
            master_access,
            first: AtomicUsize::new(0),
            named: Mutex::default(),
            moves: watch::Sender::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    fn question(&self) -> Cmd {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
        question
    }

    async fn ask_each(&self) -> Result<Target, Failure> {
        let (mut worst, first) = (None, self.first.load(Ordering::SeqCst));
        for index in (0..self.hosts.len()).map(|step| (first + step) % self.hosts.len()) {
            match self.ask_one(index).await {
                Ok(named) => {
                    self.first.store(index, Ordering::SeqCst);
                    let target = self.master_access.to_master(&named);
                    *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Some(named);
                    return target;
                }
                Err(failure) => worst = Some(failure.at(&self.hosts[index]).or_worse(worst)),
            }
        }
        Err(worst.unwrap_or_else(Failure::gone))
    }

    async fn ask_one(&self, index: usize) -> Result<Host, Failure> {
        let target = self.access.to(&self.hosts[index])?;
        let answer = ask(target, &[self.question()]).await.map_err(|failure| match failure.trouble {
            // What it does not know at all is no sentinel's command.
            Trouble::Failed => Failure::new(Trouble::Unsuitable, "this is no sentinel"),
            _ => failure,
        })?;
        answer.into_iter().next().and_then(host_in).ok_or_else(|| {
            Failure::new(Trouble::Unsuitable, format!("the sentinel knows no master named `{}`", self.master))
        })
    }

    /// Listens to one of the sentinels for ever.
    pub(crate) async fn listen(
        self: Arc<Self>,
        index: usize,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) {
        let (mut backoff, mut said) = (Backoff::default(), None);
        loop {
            if let Ok(ear) = self.subscribe(index).await {
                backoff.reset();
                self.hear(index, ear, &mut said, &*clock).await;
            }
            clock.sleep(backoff.next(&*entropy)).await;
        }
    }

    async fn subscribe(&self, index: usize) -> Result<Ear, Failure> {
        let (sender, pushes) = unbounded_channel();
        let target = self.access.to(&self.hosts[index])?;
        let mut connection = connect(target, ProtocolVersion::RESP3, Some(sender)).await?;
        connection.subscribe("+switch-master").await?;
        Ok(Ear { connection, pushes })
    }

    /// Until the connection is gone.
    async fn hear(&self, index: usize, mut ear: Ear, said: &mut Option<Host>, clock: &dyn Clock) {
        loop {
            let Ok(answer) = self.question().query_async::<Value>(&mut ear.connection).await else { return };
            self.note(index, host_in(answer), said);
            tokio::select! {
                heard = ear.hear_switch() => if !heard { return },
                () = clock.sleep(CHECK) => {}
            }
        }
    }

    /// A sentinel that was cut off has an old answer for long: only its change is news, not its difference.
    fn note(&self, index: usize, answer: Option<Host>, said: &mut Option<Host>) {
        let Some(answer) = answer else { return };
        let changed = said.as_ref().is_some_and(|before| *before != answer);
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if changed && named.is_some_and(|named| named != answer) {
            self.first.store(index, Ordering::SeqCst);
            self.moves.send_modify(|moves| *moves += 1);
        }
        *said = Some(answer);
    }
}

impl Locate for Sentinels {
    fn locate(&self) -> BoxFuture<'_, Result<Target, Failure>> {
        Box::pin(self.ask_each())
    }

    /// Whoever named what failed may be behind the others.
    fn heard(&self, failure: &Failure) {
        if failure.breaks_connection() {
            self.first.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn moves(&self) -> watch::Receiver<u64> {
        self.moves.subscribe()
    }
}

struct Ear {
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
}

impl Ear {
    /// `false` when the connection is gone. Which master it was is asked next, whichever it says.
    async fn hear_switch(&mut self) -> bool {
        while let Some(push) = self.pushes.recv().await {
            match push.kind {
                PushKind::Message => return true,
                PushKind::Disconnection => return false,
                _ => {}
            }
        }
        false
    }
}

/// The address in an answer; `None` when there is none.
fn host_in(answer: Value) -> Option<Host> {
    let (name, port): (String, u16) = redis::from_redis_value(answer).ok()?;
    Some(Host { name, port })
}
