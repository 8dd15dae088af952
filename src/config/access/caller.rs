//! Who asks, and what that allows. Pure.

use std::collections::BTreeSet;

use crate::ids::{Tenant, Word};

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Makes, reads and ends sessions of its tenants.
    Sessions,
    /// Reads everything but what tenants wrote.
    Auditor,
    /// Reads what tenants wrote, beside a role that reads.
    Tails,
    /// Acts, and reads what an auditor reads.
    Operator,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sessions, Self::Auditor, Self::Tails, Self::Operator];

    /// As it stands in the access file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Auditor => "auditor",
            Self::Tails => "tails",
            Self::Operator => "operator",
        }
    }

    /// The role of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// Whose sessions a caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenants {
    /// Everybody's.
    All,
    /// Those of these tenants; never none.
    Of(BTreeSet<String>),
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's or account's name: it stands in records.
    pub name: Word,
    /// What it may do.
    pub roles: BTreeSet<Role>,
    /// Whose sessions it sees.
    pub tenants: Tenants,
}

impl Caller {
    /// Whoever reaches a listener that asks for no token: on this machine alone. What tenants wrote is not for it.
    #[must_use]
    pub fn local() -> Self {
        let roles = [Role::Sessions, Role::Auditor, Role::Operator].into();
        Self { name: Word::new("local"), roles, tenants: Tenants::All }
    }

    /// Whether it has the role.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether it may do what needs this.
    #[must_use]
    pub fn may(&self, need: Need) -> bool {
        match need {
            Need::Nothing => true,
            Need::Read => self.is(Role::Auditor) || self.is(Role::Operator),
            Need::Sessions => self.is(Role::Sessions) || self.is(Role::Operator),
            Need::ReadSessions => self.may(Need::Sessions) || self.may(Need::Read),
            Need::Act => self.is(Role::Operator),
        }
    }

    /// Whether it sees what is this tenant's; what is nobody's that is known is seen by those alone who see everybody's.
    #[must_use]
    pub fn sees(&self, tenant: Option<&Tenant>) -> bool {
        match &self.tenants {
            Tenants::All => true,
            Tenants::Of(tenants) => tenant.is_some_and(|tenant| tenants.contains(tenant.as_str())),
        }
    }

    /// Whether it may read what tenants wrote.
    #[must_use]
    pub fn reads_texts(&self) -> bool {
        self.is(Role::Tails) && self.may(Need::Read)
    }
}

/// What a route needs of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing: whoever watches over the process asks it.
    Nothing,
    /// Auditor or operator.
    Read,
    /// Sessions or operator.
    Sessions,
    /// Sessions, auditor or operator.
    ReadSessions,
    /// Operator.
    Act,
}

impl Need {
    /// Who has it, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "anybody",
            Self::Read => "auditor or operator",
            Self::Sessions => "sessions or operator",
            Self::ReadSessions => "sessions, auditor or operator",
            Self::Act => "operator",
        }
    }
}
