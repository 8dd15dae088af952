//! Whether the daemon is ready, and which part is not. Pure.

use serde_json::{Value, json};

/// What the daemon is for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It acts.
    Active,
    /// Another holds the lease: it serves reads.
    StandingBy,
    /// An operator stopped it from acting.
    Frozen,
    /// `act = "none"`: it decides and sends nothing.
    Observing,
}

impl Role {
    /// The role as it is shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::StandingBy => "standing by",
            Self::Frozen => "frozen",
            Self::Observing => "observing",
        }
    }
}

/// How the gateway's last answer was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayState {
    /// None yet in this incarnation.
    Waiting,
    /// It was believed, that many milliseconds ago.
    Good {
        /// Its age.
        age_ms: u64,
    },
    /// It was not believed, or none came.
    Bad {
        /// Why.
        reason: String,
    },
}

/// What readiness is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The log has been replayed.
    pub replayed: bool,
    /// The pods have been listed in this incarnation.
    pub listed: bool,
    /// The Secrets have, too.
    pub secrets_listed: bool,
    /// How long ago the watch last gave a sign of life, milliseconds; `None` before the first.
    pub watch_age_ms: Option<u64>,
    /// At which age it is taken for dead, milliseconds.
    pub watch_limit_ms: u64,
    /// The log takes appends.
    pub log_writable: bool,
    /// Why it takes none, when that is known.
    pub log_failed: Option<String>,
    /// Nodes cannot be watched: nothing is ever forced away. It fails nothing.
    pub nodes_unknown: bool,
    /// What the daemon is for now.
    pub role: Role,
    /// Why it stands by, when it does.
    pub standing_by: Option<String>,
    /// How the gateway is; it fails nothing, because without it what runs goes on running.
    pub gateway: GatewayState,
}

impl Readiness {
    /// The parts that fail, by name; none means ready. One that stands by only has to have replayed.
    #[must_use]
    pub fn failing(&self) -> Vec<&'static str> {
        let stands_by = self.role == Role::StandingBy;
        let watching = self.watch_age_ms.is_some_and(|age| age < self.watch_limit_ms);
        let parts = [
            ("replayed", self.replayed),
            ("listed", self.listed || stands_by),
            ("secrets_listed", self.secrets_listed || stands_by),
            ("watching", watching || stands_by),
            ("log_writable", self.log_writable || stands_by),
        ];
        parts.into_iter().filter(|(_, fine)| !fine).map(|(name, _)| name).collect()
    }

    /// As `/readyz` says it.
    #[must_use]
    pub fn json(&self) -> Value {
        let failing = self.failing();
        let gateway = match &self.gateway {
            GatewayState::Waiting => json!({"state": "waiting"}),
            GatewayState::Good { age_ms } => json!({"state": "good", "age_ms": age_ms}),
            GatewayState::Bad { reason } => json!({"state": "bad", "reason": reason}),
        };
        json!({
            "ready": failing.is_empty(),
            "failing": failing,
            "role": self.role.name(),
            "standing_by": self.standing_by,
            "replayed": self.replayed,
            "listed": self.listed,
            "secrets_listed": self.secrets_listed,
            "watch_age_ms": self.watch_age_ms,
            "watch_limit_ms": self.watch_limit_ms,
            "log_writable": self.log_writable,
            "log_failed": self.log_failed,
            "nodes_unknown": self.nodes_unknown,
            "gateway": gateway,
        })
    }
}
