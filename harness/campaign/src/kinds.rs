//! The kinds of a run: litmus tests, whose outcomes are counted, tests of forward progress, whose ends are, and shaders of users,
//! whose buffers are looked at.

use results::wire::DriverRecord;

use crate::shard::Shard;

pub mod litmus;
pub mod progress;
pub mod shader;

/// What a run is asked for besides its tests and devices.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The model that is named, where one is.
    pub model: Option<String>,
    /// The stress that is named, where one is.
    pub stress: Option<String>,
    /// The fault of the simulated GPU, where it has one.
    pub fault: Option<String>,
    /// Instances of each test, or dispatches of each placement.
    pub instances: Option<u64>,
    /// Worker processes at once for one device.
    pub jobs: u32,
    /// How often a failed test is tried again.
    pub retries: u32,
    /// Whether the validation layers are on.
    pub validate: bool,
    /// The part of all tests that this run is.
    pub shard: Option<Shard>,
}

/// The seed of one test: the same alone as among others.
fn seed_of(seed: u64, test: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(test.as_bytes());
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The published form of a driver.
fn driver_record(identity: &plan::Identity) -> DriverRecord {
    DriverRecord {
        name: identity.driver_name.clone(),
        info: identity.driver_info.clone(),
        id: identity.driver_id,
        version: identity.driver_version,
    }
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-_./:@,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let cases = [
            ("mp/MP+rel-acq.wg@v", "mp/MP+rel-acq.wg@v"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$x", "'$x'"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }
}
