//! Selects the shard of this process, from the environment variables of CI systems, Slurm arrays and indexed
//! Kubernetes jobs.

/// The variable of this program, with a value `i/n` as for `--shard`.
const OWN: &str = "VK_LITMUS_SHARD";
/// The index of a task in a Slurm array.
const SLURM_TASK: &str = "SLURM_ARRAY_TASK_ID";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The index, from 1.
    pub index: usize,
    /// The number of shards.
    pub count: usize,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// Parses a shard such as `2/4`.
///
/// # Errors
/// If the text has another form.
pub fn parse_shard(text: &str) -> Result<Shard, String> {
    let parsed = text
        .split_once('/')
        .and_then(|(index, count)| Some(Shard { index: index.parse().ok()?, count: count.parse().ok()? }));
    match parsed {
        Some(shard) if (1..=shard.count).contains(&shard.index) => Ok(shard),
        _ => Err("expected i/n with i from 1 to n, such as 2/4".to_owned()),
    }
}

/// Returns every `count`-th item. Neighbours cost about the same, so that strides balance better than blocks.
pub fn select_shard<T>(all: Vec<T>, shard: Option<Shard>) -> Vec<T> {
    match shard {
        None => all,
        Some(Shard { index, count }) => all
            .into_iter()
            .enumerate()
            .filter(|(i, _)| i % count == index - 1)
            .map(|(_, item)| item)
            .collect(),
    }
}

/// The two variables of a system that numbers jobs.
struct VariablePair {
    index: &'static str,
    count: &'static str,
    /// The index of the first job.
    first: usize,
}

/// The systems within a Slurm array, from inner to outer.
const INNER_SYSTEMS: [VariablePair; 2] = [
    VariablePair { index: "GTEST_SHARD_INDEX", count: "GTEST_TOTAL_SHARDS", first: 0 },
    VariablePair { index: "JOB_COMPLETION_INDEX", count: "JOB_COMPLETIONS", first: 0 },
];
/// A system whose jobs may start a Slurm array.
const GITLAB: VariablePair = VariablePair { index: "CI_NODE_INDEX", count: "CI_NODE_TOTAL", first: 1 };

/// A shard with the variables that define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedShard {
    pub shard: Shard,
    pub variables: String,
}

/// An error in the variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    #[error("{index} is set and {count} is not: pass `--shard i/n`, or `--shard 1/1` to run all tests")]
    NoCount { index: &'static str, count: &'static str },
    /// A value is not a number, or the index is out of range.
    #[error(
        "{variables} are `{index}` and `{count}`, which is not a valid shard: pass `--shard i/n` instead"
    )]
    Malformed { variables: String, index: String, count: String },
    /// The variable of this program has an invalid value.
    #[error("{OWN} is `{0}`: expected i/n with i from 1 to n, such as 2/4")]
    InvalidVariable(String),
    /// The tasks of an array are not numbered in equal steps.
    #[error("the tasks of this Slurm array are not numbered in equal steps: pass `--shard i/n`")]
    UnevenArray,
}

/// Returns the shard of the environment; `None` without one, or for a single shard.
///
/// # Errors
/// If the variables contradict each other.
pub fn from_environment(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<NamedShard>, ShardError> {
    // Some systems set empty variables for a job that is not split.
    let get = |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let named = match get(OWN) {
        Some(text) => {
            let shard = parse_shard(&text).map_err(|_| ShardError::InvalidVariable(text))?;
            Some(NamedShard { shard, variables: OWN.to_owned() })
        }
        None => find_in_systems(&get)?,
    };
    Ok(named.filter(|named| named.shard.count > 1 || named.variables == OWN))
}

fn find_in_systems(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<NamedShard>, ShardError> {
    for pair in &INNER_SYSTEMS {
        if let Some(named) = shard_of_pair(pair, get)? {
            return Ok(Some(named));
        }
    }
    match shard_of_slurm(get)? {
        None => shard_of_pair(&GITLAB, get),
        named => Ok(named),
    }
}

fn shard_of_pair(
    pair: &VariablePair,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<NamedShard>, ShardError> {
    let Some(index) = get(pair.index) else { return Ok(None) };
    let Some(count) = get(pair.count) else {
        return Err(ShardError::NoCount { index: pair.index, count: pair.count });
    };
    let variables = format!("{} and {}", pair.index, pair.count);
    let parsed = index.parse::<usize>().ok().zip(count.parse::<usize>().ok());
    let shard = parsed.and_then(|(index, count)| {
        let index = index.checked_sub(pair.first)?.checked_add(1)?;
        (1..=count).contains(&index).then_some(Shard { index, count })
    });
    match shard {
        Some(shard) => Ok(Some(NamedShard { shard, variables })),
        None => Err(ShardError::Malformed { variables, index, count }),
    }
}

/// Reads a Slurm array, whose indices may have an offset and a step: `--array=10-40:10` has four tasks.
fn shard_of_slurm(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<NamedShard>, ShardError> {
    let Some(task) = get(SLURM_TASK) else { return Ok(None) };
    let Some(count_text) = get("SLURM_ARRAY_TASK_COUNT") else {
        return Err(ShardError::NoCount { index: SLURM_TASK, count: "SLURM_ARRAY_TASK_COUNT" });
    };
    let variables = format!("{SLURM_TASK} and SLURM_ARRAY_TASK_COUNT");
    let malformed = || ShardError::Malformed {
        variables: variables.clone(),
        index: task.clone(),
        count: count_text.clone(),
    };
    let number = |text: &str| text.parse::<usize>().ok();
    let (Some(id), Some(count)) = (number(&task), number(&count_text)) else { return Err(malformed()) };
    let least = get("SLURM_ARRAY_TASK_MIN").and_then(|text| number(&text));
    let most = get("SLURM_ARRAY_TASK_MAX").and_then(|text| number(&text));
    let (Some(least), Some(most)) = (least, most) else { return Err(malformed()) };
    let range = most.checked_sub(least).ok_or_else(malformed)?;
    let from_least = id.checked_sub(least).ok_or_else(malformed)?;
    let steps = count.checked_sub(1).ok_or_else(malformed)?;
    let step = range.checked_div(steps).unwrap_or(1);
    let is_even = if steps == 0 { range == 0 } else { step > 0 && step * steps == range };
    if !is_even || from_least % step != 0 {
        return Err(ShardError::UnevenArray);
    }
    let index = from_least / step + 1;
    if index > count {
        return Err(malformed());
    }
    Ok(Some(NamedShard { shard: Shard { index, count }, variables }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards() {
        assert_eq!(parse_shard("2/4"), Ok(Shard { index: 2, count: 4 }));
        for wrong in ["0/4", "5/4", "1/0", "1", "a/b", "-1/2", ""] {
            assert!(parse_shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn environments_have_shards_or_errors() {
        const ERROR: &str = "error";
        let cases = [
            ("VK_LITMUS_SHARD=2/4", "2/4 by VK_LITMUS_SHARD"),
            ("GTEST_SHARD_INDEX=1 GTEST_TOTAL_SHARDS=4", "2/4 by GTEST_SHARD_INDEX and GTEST_TOTAL_SHARDS"),
            ("JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=4", "4/4 by JOB_COMPLETION_INDEX and JOB_COMPLETIONS"),
            ("CI_NODE_INDEX=1 CI_NODE_TOTAL=3", "1/3 by CI_NODE_INDEX and CI_NODE_TOTAL"),
            (
                "SLURM_ARRAY_TASK_ID=30 MIN=10 MAX=40 COUNT=4 CI_NODE_INDEX=1 CI_NODE_TOTAL=2",
                "3/4 by SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT",
            ),
            (
                "SLURM_ARRAY_TASK_ID=0 MIN=0 MAX=1 COUNT=2",
                "1/2 by SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT",
            ),
            ("", ""),
            ("CI_NODE_TOTAL=1", ""),
            ("CI_NODE_INDEX= CI_NODE_TOTAL=1", ""),
            ("JOB_COMPLETION_INDEX=0 JOB_COMPLETIONS=1", ""),
            ("SLURM_ARRAY_TASK_ID=7 MIN=7 MAX=7 COUNT=1", ""),
            ("VK_LITMUS_SHARD=5/4", ERROR),
            ("CI_NODE_INDEX=0 CI_NODE_TOTAL=3", ERROR),
            ("CI_NODE_INDEX=4 CI_NODE_TOTAL=3", ERROR),
            ("CI_NODE_INDEX=2", ERROR),
            ("CI_NODE_INDEX=two CI_NODE_TOTAL=3", ERROR),
            ("JOB_COMPLETION_INDEX=-1 JOB_COMPLETIONS=3", ERROR),
            ("SLURM_ARRAY_TASK_ID=3 MIN=1 MAX=7 COUNT=3", ERROR),
            ("SLURM_ARRAY_TASK_ID=3 COUNT=3", ERROR),
        ];
        for (environment, expected) in cases {
            let variables: Vec<(String, &str)> = environment
                .split_whitespace()
                .map(|one| {
                    let (name, value) = one.split_once('=').unwrap();
                    let is_of_array = ["MIN", "MAX", "COUNT"].contains(&name);
                    let prefix = if is_of_array { "SLURM_ARRAY_TASK_" } else { "" };
                    (format!("{prefix}{name}"), value)
                })
                .collect();
            let get = |name: &str| {
                variables.iter().find(|(known, _)| known == name).map(|(_, value)| (*value).to_owned())
            };
            let found = match from_environment(&get) {
                Ok(named) => {
                    named.map_or(String::new(), |named| format!("{} by {}", named.shard, named.variables))
                }
                Err(_) => ERROR.to_owned(),
            };
            assert_eq!(found, expected, "{environment}");
        }
    }
}
