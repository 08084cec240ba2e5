//! Tables indexed by typed ids: one entry for each element of a list; unknown ids are errors, never defaults.

use std::fmt;
use std::marker::PhantomData;

use thiserror::Error;

use super::{LabelId, LocationId, RegisterId, ThreadId};

/// The index of something in a list.
pub trait Id: Copy {
    /// The name of the list.
    const OF: &'static str;

    /// Returns the position of its entry.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($id:ident: $of:expr;)*) => {
        $(impl Id for $id {
            const OF: &'static str = $of;

            fn index(self) -> usize {
                usize::from(self.0)
            }
        })*
    };
}

ids! {
    ThreadId: "thread";
    RegisterId: "register";
    LocationId: "location";
    LabelId: "label";
}

/// An id without an entry in a table: a bug in this program, never a mistake in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("internal: no {of} {index}")]
pub struct NoEntry {
    /// The name of the table.
    pub of: &'static str,
    /// The index.
    pub index: usize,
}

/// One entry for each id.
#[derive(Clone, PartialEq, Eq)]
pub struct Table<I, T> {
    entries: Vec<T>,
    ids: PhantomData<fn(I)>,
}

impl<I, T: fmt::Debug> fmt::Debug for Table<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}

impl<I: Id, T> Table<I, T> {
    /// Returns the entry of an id.
    ///
    /// # Errors
    ///
    /// If the table has no entry for it.
    pub fn get(&self, id: I) -> Result<&T, NoEntry> {
        self.entries.get(id.index()).ok_or(NoEntry { of: I::OF, index: id.index() })
    }

    /// Replaces the entry of an id.
    ///
    /// # Errors
    ///
    /// If the table has no entry for it.
    pub fn set(&mut self, id: I, entry: T) -> Result<(), NoEntry> {
        let slot = self.entries.get_mut(id.index());
        *slot.ok_or(NoEntry { of: I::OF, index: id.index() })? = entry;
        Ok(())
    }

    /// Returns the entries in the order of their ids.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    /// Iterates in the order of the ids.
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Table<I, T> {
        Table { entries: entries.into_iter().collect(), ids: PhantomData }
    }
}
