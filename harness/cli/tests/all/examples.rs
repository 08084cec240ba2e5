//! Executes the kernels of `examples` on arrays; each seeded bug fails with its lines and a token.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use vk_litmus::{ShaderTest, ShaderTestError, ShaderTestRun, TestDevice};

use crate::common::{binary, installed, software_drivers};

#[derive(Deserialize)]
struct ExampleCase {
    kernel: String,
    grid: [u32; 3],
    varies: bool,
    buffers: BTreeMap<String, Vec<u32>>,
    expected: BTreeMap<String, Vec<u32>>,
    bugs: Vec<SeededBug>,
}

#[derive(Deserialize)]
struct SeededBug {
    edits: Vec<[String; 2]>,
    /// The racing lines; empty if the bug only makes contents depend on the schedule.
    race: Vec<u32>,
    varies: bool,
}

const SEED: u64 = 5;

impl ExampleCase {
    /// Executes a text of the kernel on a copy of its buffers; returns their final contents as well.
    fn run(
        &self,
        text: &str,
        driver: Option<&str>,
    ) -> (Result<ShaderTestRun, ShaderTestError>, BTreeMap<String, Vec<u32>>) {
        let mut buffers = self.buffers.clone();
        let mut test = ShaderTest::source(&self.kernel, text).grid(self.grid).seed(SEED);
        for (name, data) in &mut buffers {
            let (set, binding) = name.split_once('.').unwrap();
            test = test.bind(set.parse().unwrap(), binding.parse().unwrap(), data);
        }
        if let Some(driver) = driver {
            test = test.on(TestDevice::named(driver).program(binary()));
        }
        let result = test.run();
        (result, buffers)
    }
}

#[test]
fn examples_compute_their_contents_and_seeded_bugs_fail() {
    if !installed("naga") || !installed("glslangValidator") {
        return;
    }
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"));
    let cases = std::fs::read_to_string(folder.join("cases.json")).unwrap();
    let drivers = software_drivers();
    let cases: Vec<ExampleCase> = serde_json::from_str(&cases).unwrap();
    for case in &cases {
        let kernel = &case.kernel;
        let text = std::fs::read_to_string(folder.join(kernel)).unwrap();
        // Those in folders use the instructions of `ci/python/contents.tsv`, which run on devices there.
        for driver in drivers.iter().filter(|_| !kernel.contains('/')) {
            let on_device = case.run(&text, Some(driver)).0;
            assert!(on_device.is_ok(), "{kernel} on {driver}: {on_device:?}");
        }
        let (result, buffers) = case.run(&text, None);
        let run = result.unwrap_or_else(|error| panic!("{kernel}: {error}"));
        assert_eq!(run.order_dependent.is_some(), case.varies, "{kernel}");
        case.expected.iter().for_each(|(name, data)| assert_eq!(&buffers[name], data, "{kernel}"));
        for bug in &case.bugs {
            let broken = bug.edits.iter().fold(text.clone(), |text, [from, to]| {
                assert!(text.contains(from), "{kernel}: no {from}");
                text.replacen(from, to, 1)
            });
            match case.run(&broken, None) {
                (Ok(run), _) => {
                    assert!(bug.varies && run.order_dependent.is_some(), "{kernel}: {:?}", bug.edits)
                }
                (Err(error), unchanged) => {
                    let message = error.to_string();
                    let has_line = |line: &u32| message.contains(&format!("{kernel}:{line}\n"));
                    assert!(bug.race.iter().all(has_line) && !bug.varies, "{message}");
                    let ShaderTestError::Finding { token: Some(token), .. } = error else {
                        panic!("{message}")
                    };
                    assert!(token.starts_with(&format!("{SEED}:")), "{message}");
                    assert_eq!(unchanged, case.buffers, "{kernel}");
                }
            }
        }
    }
}
