//! Profiles: sets of accepted facts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A set of accepted facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Documented facts and the assumptions of compilers.
    #[default]
    Documented,
    /// As documented, but vector accesses may arrive after their issue, on generations whose compilers assume
    /// otherwise.
    Lagging,
    /// Without undocumented facts. A finding only in this profile is a question, not a defect.
    Paranoid,
}

impl Profile {
    /// All profiles, from most to fewest accepted facts.
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
        let found_profile = Profile::ALL.into_iter().find(|profile| profile.to_string() == text);
        found_profile.ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`; expected documented, lagging or paranoid")]
pub struct UnknownProfile(pub String);
