//! What the machine takes for granted, as data: each fact with its source and how sure it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::family::Generation;
use crate::machine;
use crate::question::DispatchBarrier;
use crate::text::Modifiers;

/// The table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Every fact.
    #[serde(rename = "fact")]
    pub facts: Vec<Fact>,
    /// Which bits take which access past which cache.
    pub bits: Vec<BitRule>,
    /// Which caches a barrier between dispatches empties.
    pub barriers: Vec<BarrierRule>,
}

/// Something that is taken for granted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Its name in results.
    pub id: String,
    /// How sure it is.
    pub grade: Grade,
    /// On which side an assumption is.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// Who says so.
    pub source: String,
    /// The generations that it speaks of; all where there are none.
    #[serde(default)]
    pub generations: Vec<String>,
    /// The profiles under which it holds; all where there are none.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// What it says.
    pub text: String,
}

/// How sure a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// LLVM or Mesa say so.
    Documented,
    /// Seen in what a compiler emitted.
    Measured,
    /// An assumption of this machine.
    Assumed,
    /// In doubt.
    Uncertain,
}

/// On which side of hardware an assumption is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It allows more: what is reachable by it may not be on hardware.
    More,
    /// It allows less: what is unreachable by it may be reachable on hardware.
    Less,
}

/// Which facts are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// What is documented, or what the compilers rest on.
    #[default]
    Documented,
    /// As documented, but that a vector access need not arrive when it is issued, on the generations of which compilers assume it.
    Lagging,
    /// Without what no document says: what is found under it alone is a question, not a finding.
    Paranoid,
}

impl Profile {
    /// All of them, those that believe more first.
    pub const ALL: [Profile; 3] = [Profile::Documented, Profile::Lagging, Profile::Paranoid];
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Profile::Documented => "documented",
            Profile::Lagging => "lagging",
            Profile::Paranoid => "paranoid",
        })
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Profile, UnknownProfile> {
        let named = Profile::ALL.into_iter().find(|profile| profile.to_string() == text);
        named.ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

/// A word that is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no profile `{0}`; there are documented, lagging and paranoid")]
pub struct UnknownProfile(pub String);

/// A rule about one bit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitRule {
    /// Where it holds.
    pub generations: Vec<String>,
    /// For which accesses.
    pub access: Kind,
    /// The flag, or `key:value`.
    pub when: String,
    /// The caches that are not read; for a store, whose line is dropped instead of changed.
    pub skips: Vec<Cache>,
    /// The fact that says so.
    pub fact: String,
}

/// A rule about the access mask of a barrier between dispatches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierRule {
    /// The accesses to which it makes memory visible, by the words of access masks: the rule holds where one of them is among these.
    pub visible: Vec<String>,
    /// The caches that it empties, everywhere.
    pub drops: Vec<Cache>,
    /// The fact that says so.
    pub fact: String,
}

/// A kind of access, as far as bits go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A vector load.
    Load,
    /// A vector store.
    Store,
    /// A scalar load.
    Scalar,
}

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// The compute unit's vector cache: L1 up to GFX9, L0 after it.
    Vector,
    /// The shader array's cache from GFX10 on.
    Array,
    /// The scalar cache.
    Scalar,
}

impl Cache {
    /// Its number among those of the machine.
    pub(crate) fn index(self) -> usize {
        match self {
            Cache::Vector => machine::VECTOR,
            Cache::Array => machine::ARRAY,
            Cache::Scalar => machine::SCALAR,
        }
    }
}

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// It is not written as it should be.
    #[error("table of facts: {0}")]
    Syntax(#[from] toml::de::Error),
    /// It names what it does not have.
    #[error("table of facts: {0}")]
    Unknown(String),
}

const SHIPPED: &str = include_str!("facts.toml");

impl Facts {
    /// The table that is shipped.
    ///
    /// # Errors
    /// As [`Facts::from_str`]; the tests read it.
    pub fn shipped() -> Result<Facts, FactsError> {
        SHIPPED.parse()
    }

    /// The fact of this name.
    pub fn get(&self, id: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.id == id)
    }

    /// Returns true if the fact is believed for a generation under a profile. A fact that the table does not have is not.
    pub fn holds(&self, id: &str, generation: Generation, profile: Profile) -> bool {
        self.get(id).is_some_and(|fact| {
            (fact.generations.is_empty() || fact.generations.iter().any(|name| name == generation.name()))
                && (fact.profiles.is_empty() || fact.profiles.contains(&profile))
        })
    }

    /// The profiles under which different facts are believed of a generation, [`Profile::Documented`] first.
    pub fn profiles(&self, generation: Generation) -> Vec<Profile> {
        let believed = |profile: Profile| -> Vec<&str> {
            let facts = self.facts.iter().filter(|fact| self.holds(&fact.id, generation, profile));
            facts.map(|fact| fact.id.as_str()).collect()
        };
        let mut found: Vec<Profile> = Vec::new();
        for profile in Profile::ALL {
            if !found.iter().any(|known| believed(*known) == believed(profile)) {
                found.push(profile);
            }
        }
        found
    }

    /// The rules that apply to a barrier between dispatches.
    pub(crate) fn barrier_rules<'f>(
        &'f self,
        barrier: &'f DispatchBarrier,
    ) -> impl Iterator<Item = &'f BarrierRule> {
        self.barriers.iter().filter(|rule| rule.visible.iter().any(|word| barrier.visible.contains(word)))
    }

    /// The rules that apply to an access.
    pub(crate) fn rules<'f>(
        &'f self,
        generation: Generation,
        access: Kind,
        modifiers: &'f Modifiers,
    ) -> impl Iterator<Item = &'f BitRule> {
        self.bits.iter().filter(move |rule| {
            rule.access == access
                && rule.generations.iter().any(|name| name == generation.name())
                && match rule.when.split_once(':') {
                    Some((key, value)) => modifiers.value(key) == Some(value),
                    None => modifiers.has(&rule.when),
                }
        })
    }
}

impl FromStr for Facts {
    type Err = FactsError;

    /// Reads a table and checks that everything it names is known.
    fn from_str(text: &str) -> Result<Facts, FactsError> {
        let facts: Facts = toml::from_str(text)?;
        let named = facts.facts.iter().flat_map(|fact| &fact.generations);
        for name in named.chain(facts.bits.iter().flat_map(|rule| &rule.generations)) {
            if !Generation::ALL.iter().any(|generation| generation.name() == name) {
                return Err(FactsError::Unknown(format!("no generation `{name}`")));
            }
        }
        let used = facts.bits.iter().map(|rule| &rule.fact);
        for fact in used.chain(facts.barriers.iter().map(|rule| &rule.fact)) {
            if facts.get(fact).is_none() {
                return Err(FactsError::Unknown(format!("no fact `{fact}`")));
            }
        }
        for (number, fact) in facts.facts.iter().enumerate() {
            if (fact.grade == Grade::Assumed) != fact.direction.is_some() {
                return Err(FactsError::Unknown(format!("the direction of an assumption, at `{}`", fact.id)));
            }
            if facts.facts.iter().take(number).any(|other| other.id == fact.id) {
                return Err(FactsError::Unknown(format!("fact `{}` twice", fact.id)));
            }
        }
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_sound() {
        let facts = Facts::shipped().unwrap();
        for fact in &facts.facts {
            assert!(!fact.source.is_empty() && !fact.text.is_empty(), "{}", fact.id);
        }
        for (generation, documented) in [(Generation::Gfx9, true), (Generation::Gfx10, false)] {
            assert_eq!(facts.holds("issue-is-arrival", generation, Profile::Documented), documented);
            for profile in [Profile::Lagging, Profile::Paranoid] {
                assert!(!facts.holds("issue-is-arrival", generation, profile));
            }
        }
        use Profile::{Documented, Lagging, Paranoid};
        assert_eq!(facts.profiles(Generation::Gfx9), [Documented, Lagging]);
        assert_eq!(facts.profiles(Generation::Gfx11), [Documented]);
        assert_eq!(facts.profiles(Generation::Gfx12), [Documented, Paranoid]);
    }

    #[test]
    fn unknown_names_are_refused() {
        let fact = "[[fact]]\nid = 'a'\ngrade = 'assumed'\ndirection = 'less'\nsource = 's'\ntext = 't'\n";
        let rule = "[[bits]]\ngenerations = ['gfx9']\naccess = 'load'\nwhen = 'glc'\nskips = ['vector']\nfact = 'a'\n";
        let barrier = "[[barriers]]\nvisible = ['shader_read']\ndrops = ['scalar']\nfact = 'a'\n";
        assert!(format!("{fact}{rule}{barrier}").parse::<Facts>().is_ok());
        for wrong in [
            format!("{fact}{}{barrier}", rule.replace("'a'", "'b'")),
            format!("{fact}{}{barrier}", rule.replace("gfx9", "gfx5")),
            format!("{fact}{fact}{rule}{barrier}"),
            format!("{}{rule}{barrier}", fact.replace("direction = 'less'\n", "")),
            format!("{fact}{}{barrier}", rule.replace("vector", "tensor")),
            format!("{fact}{rule}{}", barrier.replace("'a'", "'b'")),
            format!("{fact}{rule}{}", barrier.replace("scalar", "tensor")),
        ] {
            assert!(wrong.parse::<Facts>().is_err(), "{wrong}");
        }
    }
}
