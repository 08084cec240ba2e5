//! Variants: how a test is told to a device, by the words behind the `@` of its id.

use std::fmt;
use std::str::FromStr;

use shaders::Pipelines;

use crate::join::Join;

/// How a test is told. The default is one kernel for all threads that run at the same time, and where threads run one
/// after another, every [`Join`] in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Variant {
    /// `split`: the threads of each workgroup in a pipeline of their own, dispatched with nothing in between.
    pub pipelines: Pipelines,
    /// A word of [`Join`]: the one way to put phases one after another.
    pub join: Option<Join>,
    /// How kernels are told to compilers: words of [`shaders::variant`].
    pub told: shaders::Variant,
}

/// A word that no variant has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown variant `{0}`: there are {names}", names = Variant::words().collect::<Vec<_>>().join(", "))]
pub struct UnknownVariant(pub String);

const SPLIT: &str = "split";

impl Variant {
    /// Every word.
    pub fn words() -> impl Iterator<Item = &'static str> {
        let told = shaders::variant::words().map(|(word, _)| word);
        std::iter::once(SPLIT).chain(Join::ALL.map(Join::name)).chain(told)
    }

    /// How kernels are made for it.
    pub fn kernel_config(&self, config: shaders::KernelConfig) -> shaders::KernelConfig {
        shaders::KernelConfig { variant: self.told, ..config }
    }

    /// The ways to put phases one after another that are tried, out of what a device with these features has.
    pub fn joins(&self, has: impl Fn(&str) -> bool) -> Vec<Join> {
        match self.join {
            Some(join) => vec![join],
            None => Join::ALL.into_iter().filter(|join| join.feature().is_none_or(&has)).collect(),
        }
    }
}

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Variant, UnknownVariant> {
        let mut variant = Variant::default();
        for word in text.split('.').filter(|word| !word.is_empty()) {
            if word == SPLIT {
                variant.pipelines = Pipelines::Split;
            } else if let Ok(told) = word.parse() {
                variant.told = variant.told.with(told);
            } else {
                variant.join = Some(word.parse().map_err(|_| UnknownVariant(word.to_owned()))?);
            }
        }
        Ok(variant)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let split = (self.pipelines == Pipelines::Split).then_some(SPLIT);
        let told = self.told.to_string();
        let told = (!told.is_empty()).then_some(told.as_str());
        let words: Vec<&str> = split.into_iter().chain(self.join.map(Join::name)).chain(told).collect();
        f.write_str(&words.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_variants_correspond() {
        for text in ["", "split", "event", "split.fence", "split.event.volatile.phi"] {
            assert_eq!(text.parse::<Variant>().unwrap().to_string(), text);
        }
        let unknown = "split.fast".parse::<Variant>().unwrap_err().to_string();
        assert!(unknown.starts_with("unknown variant `fast`: there are split, barrier, event"), "{unknown}");
    }

    #[test]
    fn a_way_without_its_feature_is_left_out_unless_it_is_named() {
        let ways = |text: &str| text.parse::<Variant>().unwrap().joins(|_| false);
        assert_eq!(ways("").len(), Join::ALL.len() - 1);
        assert_eq!(ways("timeline"), [Join::Timeline]);
    }
}
