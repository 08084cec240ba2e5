//! The hardware assumptions of the machine as data: each fact with its source and confidence.

mod profile;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::family::Generation;
use crate::machine;
use crate::question::DispatchBarrier;
use crate::text::OperandModifiers;

pub use self::profile::{Profile, UnknownProfile};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactTable {
    #[serde(rename = "fact")]
    pub facts: Vec<Fact>,
    /// Rules about bits that bypass caches.
    pub bits: Vec<BitRule>,
    /// Rules about caches that a barrier between dispatches invalidates.
    pub barriers: Vec<BarrierRule>,
}

/// An assumption about the hardware.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Its name in results.
    pub id: String,
    pub grade: Confidence,
    /// The direction of an assumption.
    #[serde(default)]
    pub direction: Option<Direction>,
    pub source: String,
    /// The generations that it applies to; empty means all.
    #[serde(default)]
    pub generations: Vec<String>,
    /// The profiles to which the fact applies; empty for all.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// Its statement.
    pub text: String,
}

/// The confidence in a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Documented by LLVM or Mesa.
    Documented,
    /// Observed in compiler output.
    Measured,
    /// An assumption of this model.
    Assumed,
    /// Doubtful.
    Uncertain,
}

/// The direction in which an assumption deviates from hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Over-approximation: a reachable outcome may be unreachable on hardware.
    More,
    /// Under-approximation: an unreachable outcome may be reachable on hardware.
    Less,
}

/// A rule about one bit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitRule {
    /// The generations that it applies to.
    pub generations: Vec<String>,
    /// The kind of access.
    pub access: AccessClass,
    /// The flag, or `key:value`.
    pub when: String,
    /// The bypassed caches; a store invalidates the line instead of updating it.
    pub skips: Vec<CacheName>,
    /// The fact that states it.
    pub fact: String,
}

/// A rule about the access mask of a barrier between dispatches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierRule {
    /// Access words; the rule applies if the barrier makes memory visible to one of them.
    pub visible: Vec<String>,
    /// The caches that are invalidated everywhere.
    pub drops: Vec<CacheName>,
    /// The fact that states it.
    pub fact: String,
}

/// The kind of access that a bit rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessClass {
    Load,
    Store,
    /// A scalar load.
    Scalar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheName {
    /// The compute unit's vector cache: L1 up to GFX9, L0 afterwards.
    Vector,
    /// The shader array's cache from GFX10 on.
    Array,
    Scalar,
}

impl CacheName {
    /// Returns its index in the machine.
    pub(crate) fn index(self) -> usize {
        match self {
            CacheName::Vector => machine::VECTOR,
            CacheName::Array => machine::ARRAY,
            CacheName::Scalar => machine::SCALAR,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("table of facts: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("table of facts: {0}")]
    Unknown(String),
}

const SHIPPED_TABLE: &str = include_str!("facts.toml");

impl FactTable {
    /// Returns the shipped table.
    ///
    /// # Errors
    ///
    /// As [`FactTable::from_str`]; a test ensures that there are none.
    pub fn shipped() -> Result<FactTable, FactsError> {
        SHIPPED_TABLE.parse()
    }

    /// Returns the fact with this name.
    pub fn get(&self, id: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.id == id)
    }

    /// Returns true if the fact is accepted for a generation in a profile; false for unknown facts.
    pub fn is_accepted(&self, id: &str, generation: Generation, profile: Profile) -> bool {
        self.get(id).is_some_and(|fact| {
            (fact.generations.is_empty() || fact.generations.iter().any(|name| name == generation.name()))
                && (fact.profiles.is_empty() || fact.profiles.contains(&profile))
        })
    }

    /// Returns the profiles that differ for a generation, [`Profile::Documented`] first.
    pub fn distinct_profiles(&self, generation: Generation) -> Vec<Profile> {
        let accepted_facts = |profile: Profile| -> Vec<&str> {
            let facts = self.facts.iter().filter(|fact| self.is_accepted(&fact.id, generation, profile));
            facts.map(|fact| fact.id.as_str()).collect()
        };
        let mut distinct: Vec<Profile> = Vec::new();
        for profile in Profile::ALL {
            if !distinct.iter().any(|previous| accepted_facts(*previous) == accepted_facts(profile)) {
                distinct.push(profile);
            }
        }
        distinct
    }

    /// Returns the rules that apply to a barrier between dispatches.
    pub(crate) fn barrier_rules<'f>(
        &'f self,
        barrier: &'f DispatchBarrier,
    ) -> impl Iterator<Item = &'f BarrierRule> {
        self.barriers.iter().filter(|rule| rule.visible.iter().any(|word| barrier.visible.contains(word)))
    }

    /// Returns the rules that apply to an access.
    pub(crate) fn bit_rules<'f>(
        &'f self,
        generation: Generation,
        access: AccessClass,
        modifiers: &'f OperandModifiers,
    ) -> impl Iterator<Item = &'f BitRule> {
        self.bits.iter().filter(move |rule| {
            rule.access == access
                && rule.generations.iter().any(|name| name == generation.name())
                && match rule.when.split_once(':') {
                    Some((key, value)) => modifiers.value(key) == Some(value),
                    None => modifiers.has_flag(&rule.when),
                }
        })
    }
}

impl FromStr for FactTable {
    type Err = FactsError;

    /// Parses a table and checks that every name in it is known.
    fn from_str(text: &str) -> Result<FactTable, FactsError> {
        let facts: FactTable = toml::from_str(text)?;
        let generation_names = facts.facts.iter().flat_map(|fact| &fact.generations);
        for name in generation_names.chain(facts.bits.iter().flat_map(|rule| &rule.generations)) {
            if !Generation::ALL.iter().any(|generation| generation.name() == name) {
                return Err(FactsError::Unknown(format!("no generation `{name}`")));
            }
        }
        let cited_facts = facts.bits.iter().map(|rule| &rule.fact);
        for fact in cited_facts.chain(facts.barriers.iter().map(|rule| &rule.fact)) {
            if facts.get(fact).is_none() {
                return Err(FactsError::Unknown(format!("no fact `{fact}`")));
            }
        }
        for (number, fact) in facts.facts.iter().enumerate() {
            if (fact.grade == Confidence::Assumed) != fact.direction.is_some() {
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
        let facts = FactTable::shipped().unwrap();
        for fact in &facts.facts {
            assert!(!fact.source.is_empty() && !fact.text.is_empty(), "{}", fact.id);
        }
        for (generation, documented) in [(Generation::Gfx9, true), (Generation::Gfx10, false)] {
            assert_eq!(facts.is_accepted("issue-is-arrival", generation, Profile::Documented), documented);
            for profile in [Profile::Lagging, Profile::Paranoid] {
                assert!(!facts.is_accepted("issue-is-arrival", generation, profile));
            }
        }
        use Profile::{Documented, Lagging, Paranoid};
        assert_eq!(facts.distinct_profiles(Generation::Gfx9), [Documented, Lagging]);
        assert_eq!(facts.distinct_profiles(Generation::Gfx11), [Documented]);
        assert_eq!(facts.distinct_profiles(Generation::Gfx12), [Documented, Paranoid]);
    }

    #[test]
    fn unknown_names_are_refused() {
        let fact = "[[fact]]\nid = 'a'\ngrade = 'assumed'\ndirection = 'less'\nsource = 's'\ntext = 't'\n";
        let rule = "[[bits]]\ngenerations = ['gfx9']\naccess = 'load'\nwhen = 'glc'\nskips = ['vector']\nfact = 'a'\n";
        let barrier = "[[barriers]]\nvisible = ['shader_read']\ndrops = ['scalar']\nfact = 'a'\n";
        assert!(format!("{fact}{rule}{barrier}").parse::<FactTable>().is_ok());
        for wrong in [
            format!("{fact}{}{barrier}", rule.replace("'a'", "'b'")),
            format!("{fact}{}{barrier}", rule.replace("gfx9", "gfx5")),
            format!("{fact}{fact}{rule}{barrier}"),
            format!("{}{rule}{barrier}", fact.replace("direction = 'less'\n", "")),
            format!("{fact}{}{barrier}", rule.replace("vector", "tensor")),
            format!("{fact}{rule}{}", barrier.replace("'a'", "'b'")),
            format!("{fact}{rule}{}", barrier.replace("scalar", "tensor")),
        ] {
            assert!(wrong.parse::<FactTable>().is_err(), "{wrong}");
        }
    }
}
