//! Tests without a kernel are refused by the rule that they break, in the pipelines and variants of
//! `refusals.txt`.

use crate::common::LAVAPIPE;
use shaders::{KernelConfig, Pipelines, Variant};

#[test]
fn tests_are_refused_by_the_rule_that_they_break() {
    let (mut outcomes, mut wrong) = (0, Vec::new());
    for block in include_str!("refusals.txt").split("\n\n") {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        let is_outcome = |line: &&str| ["kernel", "merged", "split"].iter().any(|one| line.starts_with(one));
        let (expected, text): (Vec<&str>, Vec<&str>) = lines.partition(is_outcome);
        assert_eq!(expected.is_empty(), text.is_empty(), "{block}");
        let test = litmus::parse(&format!("VULKAN T\n{}", text.join("\n")), block);
        for line in expected {
            let (words, rule) = line.split_once(": ").unwrap();
            let (pipelines, variants) = words.split_once(' ').unwrap_or((words, ""));
            for variant in variants.split(' ') {
                let variant: Variant = variant.parse().unwrap();
                let config = KernelConfig { variant, ..LAVAPIPE };
                let outcome = test.as_ref().map_err(|error| format!("{error:?}")).and_then(|test| {
                    let made = match pipelines {
                        "kernel" => shaders::compile(test, &config).map(drop),
                        "merged" => shaders::compile_program(test, &config, Pipelines::Merged).map(drop),
                        _ => shaders::compile_program(test, &config, Pipelines::Split).map(drop),
                    };
                    made.map_err(|error| error.to_string())
                });
                let outcome = outcome.map_or_else(|error| error, |()| "compiles".to_owned());
                if outcome != rule {
                    wrong.push(format!("@{variant} {outcome}:\n{block}\n\n"));
                }
                outcomes += 1;
            }
        }
    }
    assert!(wrong.is_empty() && outcomes > 120, "{outcomes}\n{}", wrong.concat());
}
