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

/// Ordered from inner to outer systems: a Slurm array may run inside a CI job, but not vice versa.
const VARIABLE_PAIRS: [VariablePair; 8] = [
    VariablePair { index: "GTEST_SHARD_INDEX", count: "GTEST_TOTAL_SHARDS", first: 0 },
    VariablePair { index: "TEST_SHARD_INDEX", count: "TEST_TOTAL_SHARDS", first: 0 },
    VariablePair { index: "JOB_COMPLETION_INDEX", count: "JOB_COMPLETIONS", first: 0 },
    // Slurm is checked between these.
    VariablePair { index: "CI_NODE_INDEX", count: "CI_NODE_TOTAL", first: 1 },
    VariablePair { index: "CIRCLE_NODE_INDEX", count: "CIRCLE_NODE_TOTAL", first: 0 },
    VariablePair { index: "BUILDKITE_PARALLEL_JOB", count: "BUILDKITE_PARALLEL_JOB_COUNT", first: 0 },
    VariablePair { index: "SYSTEM_JOBPOSITIONINPHASE", count: "SYSTEM_TOTALJOBSINPHASE", first: 1 },
    VariablePair { index: "SEMAPHORE_JOB_INDEX", count: "SEMAPHORE_JOB_COUNT", first: 1 },
];
/// The number of [`VARIABLE_PAIRS`] that are checked before Slurm.
const BEFORE_SLURM: usize = 3;

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
    let (inner, outer) = VARIABLE_PAIRS.split_at(BEFORE_SLURM);
    for pair in inner {
        if let Some(named) = shard_of_pair(pair, get)? {
            return Ok(Some(named));
        }
    }
    if let Some(named) = shard_of_slurm(get)? {
        return Ok(Some(named));
    }
    for pair in outer {
        if let Some(named) = shard_of_pair(pair, get)? {
            return Ok(Some(named));
        }
    }
    Ok(None)
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

    fn shard_text(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        from_environment(&get)
            .map(|named| named.map(|named| format!("{} by {}", named.shard, named.variables)))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn shards() {
        assert_eq!(parse_shard("2/4"), Ok(Shard { index: 2, count: 4 }));
        for wrong in ["0/4", "5/4", "1/0", "1", "a/b", "-1/2", ""] {
            assert!(parse_shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shards_follow_the_numbering_of_each_ci_system() {
        let cases: [(&[(&str, &str)], &str); 11] = [
            (&[("VK_LITMUS_SHARD", "2/4")], "2/4 by VK_LITMUS_SHARD"),
            (
                &[("GTEST_SHARD_INDEX", "1"), ("GTEST_TOTAL_SHARDS", "4")],
                "2/4 by GTEST_SHARD_INDEX and GTEST_TOTAL_SHARDS",
            ),
            (
                &[("TEST_SHARD_INDEX", "0"), ("TEST_TOTAL_SHARDS", "2")],
                "1/2 by TEST_SHARD_INDEX and TEST_TOTAL_SHARDS",
            ),
            (
                &[("JOB_COMPLETION_INDEX", "3"), ("JOB_COMPLETIONS", "4")],
                "4/4 by JOB_COMPLETION_INDEX and JOB_COMPLETIONS",
            ),
            (&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "3")], "1/3 by CI_NODE_INDEX and CI_NODE_TOTAL"),
            (
                &[("CIRCLE_NODE_INDEX", "1"), ("CIRCLE_NODE_TOTAL", "3")],
                "2/3 by CIRCLE_NODE_INDEX and CIRCLE_NODE_TOTAL",
            ),
            (
                &[("BUILDKITE_PARALLEL_JOB", "0"), ("BUILDKITE_PARALLEL_JOB_COUNT", "5")],
                "1/5 by BUILDKITE_PARALLEL_JOB and BUILDKITE_PARALLEL_JOB_COUNT",
            ),
            (
                &[("SYSTEM_JOBPOSITIONINPHASE", "2"), ("SYSTEM_TOTALJOBSINPHASE", "2")],
                "2/2 by SYSTEM_JOBPOSITIONINPHASE and SYSTEM_TOTALJOBSINPHASE",
            ),
            (
                &[("SEMAPHORE_JOB_INDEX", "1"), ("SEMAPHORE_JOB_COUNT", "2")],
                "1/2 by SEMAPHORE_JOB_INDEX and SEMAPHORE_JOB_COUNT",
            ),
            (
                &[
                    ("SLURM_ARRAY_TASK_ID", "30"),
                    ("SLURM_ARRAY_TASK_MIN", "10"),
                    ("SLURM_ARRAY_TASK_MAX", "40"),
                    ("SLURM_ARRAY_TASK_COUNT", "4"),
                    ("CI_NODE_INDEX", "1"),
                    ("CI_NODE_TOTAL", "2"),
                ],
                "3/4 by SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT",
            ),
            (
                &[
                    ("SLURM_ARRAY_TASK_ID", "0"),
                    ("SLURM_ARRAY_TASK_MIN", "0"),
                    ("SLURM_ARRAY_TASK_MAX", "1"),
                    ("SLURM_ARRAY_TASK_COUNT", "2"),
                ],
                "1/2 by SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT",
            ),
        ];
        for (variables, expected) in cases {
            assert_eq!(shard_text(variables), Ok(Some(expected.to_owned())), "{variables:?}");
        }
    }

    #[test]
    fn an_unsharded_job_runs_everything() {
        let cases: [&[(&str, &str)]; 5] = [
            &[],
            &[("CI_NODE_TOTAL", "1")],
            &[("CI_NODE_INDEX", ""), ("CI_NODE_TOTAL", "1")],
            &[("CIRCLE_NODE_INDEX", "0"), ("CIRCLE_NODE_TOTAL", "1")],
            &[
                ("SLURM_ARRAY_TASK_ID", "7"),
                ("SLURM_ARRAY_TASK_MIN", "7"),
                ("SLURM_ARRAY_TASK_MAX", "7"),
                ("SLURM_ARRAY_TASK_COUNT", "1"),
            ],
        ];
        for variables in cases {
            assert_eq!(shard_text(variables), Ok(None), "{variables:?}");
        }
    }

    #[test]
    fn contradictions_are_errors() {
        let cases: [&[(&str, &str)]; 9] = [
            &[("VK_LITMUS_SHARD", "5/4")],
            &[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "3")],
            &[("CI_NODE_INDEX", "4"), ("CI_NODE_TOTAL", "3")],
            &[("CI_NODE_INDEX", "2")],
            &[("CI_NODE_INDEX", "two"), ("CI_NODE_TOTAL", "3")],
            &[("JOB_COMPLETION_INDEX", "1")],
            &[("CIRCLE_NODE_INDEX", "-1"), ("CIRCLE_NODE_TOTAL", "3")],
            &[
                ("SLURM_ARRAY_TASK_ID", "3"),
                ("SLURM_ARRAY_TASK_MIN", "1"),
                ("SLURM_ARRAY_TASK_MAX", "7"),
                ("SLURM_ARRAY_TASK_COUNT", "3"),
            ],
            &[("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_TASK_COUNT", "3")],
        ];
        for variables in cases {
            assert!(shard_text(variables).is_err(), "{variables:?}: {:?}", shard_text(variables));
        }
    }
}
