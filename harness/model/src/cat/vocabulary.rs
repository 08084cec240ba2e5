//! Names of the base sets and relations that a model may use.

use super::plan::NodeKind;
use std::collections::BTreeMap;

/// Membership criterion of a set that is indexed by storage classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// Events with at least one of the classes: an access of class c is in `SC(M)` when c is in M.
    Any,
    /// Events with all of the classes: an operation is in `SEM(M)` when its semantics hold all of M.
    All,
}

/// A base name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VocabularyEntry {
    Plain(NodeKind),
    Indexed(Membership),
    /// An indexed set at one storage class: `SC0` is `SC` at class 0.
    Class {
        set: String,
        class: u8,
    },
}

/// The base sets and relations that the engine supplies.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    entries: BTreeMap<String, VocabularyEntry>,
    /// Change frequency of each name's value; 0 for all others.
    ranks: BTreeMap<String, u8>,
}

impl Vocabulary {
    /// No names. `_`, `0`, `id`, the functions and the derived relations of the reference are always defined.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_sets<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.entries
            .extend(names.into_iter().map(|name| (name.to_owned(), VocabularyEntry::Plain(NodeKind::Set))));
        self
    }

    pub fn with_relations<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.entries.extend(
            names.into_iter().map(|name| (name.to_owned(), VocabularyEntry::Plain(NodeKind::Relation))),
        );
        self
    }

    /// Adds a set indexed by storage classes, and `name0`, `name1`, … for each single class of `classes`.
    pub fn with_indexed_set(mut self, name: &str, membership: Membership, classes: u8) -> Self {
        self.entries.insert(name.to_owned(), VocabularyEntry::Indexed(membership));
        for class in 0..classes.min(8) {
            self.entries
                .insert(format!("{name}{class}"), VocabularyEntry::Class { set: name.to_owned(), class });
        }
        self
    }

    /// Adds another spelling of an indexed set at each single class: `SEMSC0` for `SEM` at class 0.
    pub fn with_class_names(mut self, spelling: &str, set: &str, classes: u8) -> Self {
        for class in 0..classes.min(8) {
            self.entries
                .insert(format!("{spelling}{class}"), VocabularyEntry::Class { set: set.to_owned(), class });
        }
        self
    }

    /// Sets how often a base changes during the search of one program: 0 is never (the default). Unions,
    /// intersections and differences combine stable operands first, so that the search can reuse their
    /// values.
    pub fn with_rank(mut self, name: &str, rank: u8) -> Self {
        self.ranks.insert(name.to_owned(), rank);
        self
    }

    pub(crate) fn rank_of(&self, name: &str) -> u8 {
        self.ranks.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn find_entry(&self, name: &str) -> Option<&VocabularyEntry> {
        self.entries.get(name)
    }

    pub(crate) fn membership_of(&self, name: &str) -> Option<Membership> {
        match self.entries.get(name) {
            Some(VocabularyEntry::Indexed(membership)) => Some(*membership),
            _ => None,
        }
    }

    /// All names in order.
    pub fn entry_names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

/// Static facts about the programs that a plan covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassFamilies {
    /// The storage classes that occur in the program, as class of an access or in the semantics of an operation.
    /// A set indexed by other classes is empty.
    pub classes: Vec<u8>,
    /// The sets of classes that `masks` iterates over (bit i = class i).
    pub masks: Vec<u8>,
    /// Base sets and relations that are empty in the program; expressions are simplified by it.
    pub absent: Vec<String>,
}

impl ClassFamilies {
    /// Every non-empty subset of the classes.
    pub fn from_classes(classes: impl IntoIterator<Item = u8>) -> Self {
        let classes: Vec<u8> = classes.into_iter().filter(|class| *class < 8).collect();
        let all = classes.iter().fold(0_u8, |mask, class| mask | (1 << class));
        let masks = (1..=all).filter(|mask| mask & !all == 0).collect();
        ClassFamilies { classes, masks, absent: Vec::new() }
    }

    pub(crate) fn all_classes(&self) -> u8 {
        self.classes.iter().fold(0, |mask, class| mask | 1_u8.checked_shl(u32::from(*class)).unwrap_or(0))
    }
}
