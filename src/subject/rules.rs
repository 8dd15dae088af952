//! The numbered versions of fold and plan. Each reaction names the number it was decided under, and `wharf verify` plans it
//! again under exactly that one: a change of behaviour adds a number here and keeps the old one.

/// One version of fold and plan: named switches, so that old behaviour stays readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    number: u16,
}

impl Rules {
    /// What new reactions are decided under.
    pub const CURRENT: Self = Self { number: 1 };

    /// The rules of a number; `None` when this build does not know it.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        (number == 1).then_some(Self { number })
    }

    /// Rules of a number that no build has: what a later default does to an old log.
    #[cfg(test)]
    pub(crate) const fn numbered(number: u16) -> Self {
        Self { number }
    }

    /// The number, as a record's header holds it.
    #[must_use]
    pub fn number(self) -> u16 {
        self.number
    }
}
