//! The access file: tokens by their SHA-256, Kubernetes accounts by name or group, and what each may do. Pure.
//!
//! ```toml
//! [[token]]
//! name = "audit-shipper"
//! sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//! roles = ["auditor"]
//!
//! [[account]]
//! user = "system:serviceaccount:portal:front-end"   # or: group = "system:serviceaccounts:portal"
//! roles = ["sessions"]
//! tenants = ["acme"]
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::caller::{Caller, Role, Tenants};
use crate::ids::{Word, is_dns_label, shown, unhex};

/// The largest access file, bytes.
pub const FILE_BYTES: usize = 1 << 20;

/// Everybody who may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    tokens: BTreeMap<[u8; 32], Caller>,
    users: BTreeMap<String, Caller>,
    groups: BTreeMap<String, Caller>,
}

impl Access {
    /// Reads an access file.
    ///
    /// # Errors
    /// What is wrong with it, naming the entry and what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > FILE_BYTES {
            return Err(format!("more than {FILE_BYTES} bytes"));
        }
        let written: Written = toml::from_str(text).map_err(|error| shown(error.message(), 300).to_string())?;
        let mut access = Self::default();
        let mut names = BTreeSet::new();
        for token in written.token {
            let at = format!("token \"{}\"", shown(&token.name, 60));
            let name = Some(Word::new(&token.name)).filter(|name| !name.as_str().is_empty());
            let name = name.ok_or_else(|| format!("{at}: a name is 1 to 253 letters, digits, '.', '-' and '_'"))?;
            if !names.insert(token.name.clone()) {
                return Err(format!("{at} is there twice"));
            }
            let digest = digest(&token.sha256).ok_or_else(|| format!("{at}: sha256 is 64 lower-case hex digits"))?;
            if access.tokens.insert(digest, caller(&at, name, &token.roles, token.tenants)?).is_some() {
                return Err(format!("{at}: another name has the same token"));
            }
        }
        for account in written.account {
            let (of, who) = match (account.user, account.group) {
                (Some(user), None) => (&mut access.users, user),
                (None, Some(group)) => (&mut access.groups, group),
                (Some(_), Some(_)) | (None, None) => return Err("an account has either user or group".to_owned()),
            };
            let at = format!("account \"{}\"", shown(&who, 80));
            if who.is_empty() || of.insert(who.clone(), caller(&at, account_name(&who), &account.roles, account.tenants)?).is_some() {
                return Err(format!("{at} is empty, or there twice"));
            }
        }
        if access == Self::default() {
            return Err("it names nobody: a [[token]] or an [[account]] is needed".to_owned());
        }
        Ok(access)
    }

    /// Who has this token.
    #[must_use]
    pub fn of_token(&self, token: &str) -> Option<&Caller> {
        self.tokens.get(&token_digest(token))
    }

    /// Whether there are accounts, so that the API server is worth asking.
    #[must_use]
    pub fn has_accounts(&self) -> bool {
        !self.users.is_empty() || !self.groups.is_empty()
    }

    /// Who a Kubernetes account is: what its user may, else what the first of its groups that is named may.
    #[must_use]
    pub fn of_account(&self, user: &str, groups: &[String]) -> Option<Caller> {
        let found = self.users.get(user).or_else(|| groups.iter().find_map(|group| self.groups.get(group)))?;
        Some(Caller { name: account_name(user), ..found.clone() })
    }
}

/// SHA-256 of a token.
#[must_use]
pub fn token_digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A user's or group's name as a word: what cannot stand in one becomes '.'.
fn account_name(name: &str) -> Word {
    let word: String = name.chars().take(253).map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '.' }).collect();
    Word::new(&word)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    token: Vec<WrittenToken>,
    #[serde(default)]
    account: Vec<WrittenAccount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    sha256: String,
    roles: Vec<String>,
    tenants: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAccount {
    user: Option<String>,
    group: Option<String>,
    roles: Vec<String>,
    tenants: Option<Vec<String>>,
}

fn caller(at: &str, name: Word, roles: &[String], tenants: Option<Vec<String>>) -> Result<Caller, String> {
    let known = || Role::ALL.map(Role::name).join(", ");
    let role = |name: &String| Role::parse(name).ok_or_else(|| format!("{at}: role \"{}\" is none of {}", shown(name, 40), known()));
    let roles = roles.iter().map(role).collect::<Result<BTreeSet<_>, _>>()?;
    if roles.is_empty() {
        return Err(format!("{at} has no role: some of {}", known()));
    }
    let tenants = match tenants {
        None => Tenants::All,
        Some(tenants) if !tenants.is_empty() && tenants.iter().all(|tenant| is_dns_label(tenant, 63)) => {
            Tenants::Of(tenants.into_iter().collect())
        }
        Some(_) => return Err(format!("{at}: tenants are DNS labels, one or more; leave the key out for all of them")),
    };
    // What is not of one tenant is shown whole: a role that reads or acts on everything cannot be bound to some.
    if tenants != Tenants::All && roles.iter().any(|role| *role != Role::Sessions) {
        return Err(format!("{at}: with tenants the only role is sessions"));
    }
    Ok(Caller { name, roles, tenants })
}

fn digest(text: &str) -> Option<[u8; 32]> {
    unhex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::caller::Need;
    use super::*;

    const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn token(rest: &str) -> String {
        format!("[[token]]\nname = \"ci\"\nsha256 = \"{DIGEST}\"\n{rest}\n")
    }

    #[test]
    fn a_token_is_known_by_its_digest_alone() {
        let access = Access::parse(&token("roles = [\"auditor\", \"tails\"]")).expect("a good file");
        let caller = access.of_token("test").expect("its SHA-256 is the one above");
        assert_eq!((caller.name.as_str(), caller.reads_texts(), caller.may(Need::Act)), ("ci", true, false));
        assert_eq!(access.of_token("Test"), None);
        assert_eq!(access.of_token(DIGEST), None);
    }

    #[test]
    fn an_account_goes_by_its_user_before_its_groups() {
        let file = "[[account]]\nuser = \"system:serviceaccount:a:b\"\nroles = [\"operator\"]\n\
                    [[account]]\ngroup = \"g\"\nroles = [\"sessions\"]\ntenants = [\"acme\"]\n";
        let access = Access::parse(file).expect("a good file");
        let groups = ["f".to_owned(), "g".to_owned()];
        let user = access.of_account("system:serviceaccount:a:b", &groups).expect("named");
        assert_eq!((user.name.as_str(), user.may(Need::Act)), ("system.serviceaccount.a.b", true));
        let member = access.of_account("eve", &groups).expect("of a group");
        assert_eq!((member.name.as_str(), member.tenants), ("eve", Tenants::Of(["acme".to_owned()].into())));
        assert_eq!(access.of_account("eve", &[]), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("".to_owned(), "it names nobody"),
            (token(""), "missing field `roles`"),
            (token("roles = []"), "token \"ci\" has no role: some of sessions, auditor, tails, operator"),
            (token("roles = [\"root\"]"), "role \"root\" is none of"),
            (token("roles = [\"auditor\"]\nrole = 1"), "unknown field `role`"),
            (token("roles = [\"sessions\"]\ntenants = []"), "tenants are DNS labels, one or more"),
            (token("roles = [\"sessions\"]\ntenants = [\"A\"]"), "tenants are DNS labels"),
            (token("roles = [\"sessions\", \"operator\"]\ntenants = [\"a\"]"), "the only role is sessions"),
            (format!("{}{}", token("roles = [\"auditor\"]"), token("roles = [\"auditor\"]")), "is there twice"),
            (token("roles = [\"auditor\"]").replace("9f86", "9F86"), "sha256 is 64 lower-case hex digits"),
            (token("roles = [\"auditor\"]").replace("\"ci\"", "\"c i\""), "a name is 1 to 253"),
            ("[[account]]\nroles = [\"auditor\"]".to_owned(), "either user or group"),
            ("[[account]]\nuser = \"\"\nroles = [\"auditor\"]".to_owned(), "is empty, or there twice"),
        ];
        for (file, wanted) in cases {
            let said = Access::parse(&file).expect_err(wanted);
            assert!(said.contains(wanted), "{said:?} for {file}");
        }
    }
}
