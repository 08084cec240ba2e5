//! `bench` and `tune` on the software drivers that are installed, with a small part of their time.

use serde_json::Value;

use crate::common::{Ran, assert_valid, schemas, software_drivers, vk_litmus};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn a_bench_is_valid_and_its_rates_are_those_of_its_runs() {
    for driver in software_drivers() {
        let ran =
            Ran::of(&mut vk_litmus(["bench", "--device", driver, "--format", "json", "--scale", "0.05"]));
        assert_eq!(ran.code, 0, "{driver}: {ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        schemas("bench.schema.json", "bench.schema.json")
            .iter()
            .for_each(|schema| assert_valid(schema, &report));
        let runs = report["runs"].as_array().unwrap();
        let headline: Vec<&Value> = runs.iter().filter(|run| run["purpose"] == "headline").collect();
        assert_eq!(headline.len(), 5);
        let instances = number(&report["instances_per_second"]);
        let is_median = |run: &&&Value| {
            (number(&run["instances"]) / number(&run["seconds"]) - instances).abs() < 1e-6 * instances
        };
        let median = headline.iter().find(is_median).unwrap();
        let weak = number(&median["weak"]) / number(&median["seconds"]);
        assert!((number(&report["weak_sb_per_second"]) - weak).abs() <= 1e-6 * weak);
        for run in runs {
            assert_eq!(run["error"], Value::Null, "{run}");
            let seen: u64 =
                run["outcomes"].as_array().unwrap().iter().map(|seen| seen["count"].as_u64().unwrap()).sum();
            assert_eq!(run["instances"], seen, "{run}");
            assert_eq!((&run["not_executed"], &run["unresolved"]), (&0.into(), &0.into()), "{run}");
        }
        for run in report["classic"]["runs"].as_array().unwrap() {
            assert_eq!(run["other"], 0, "{run}");
            let counts: u64 =
                run["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
            assert!(counts > 0 && counts.is_multiple_of(16_384), "{run}");
        }
        assert!(number(&report["calibration"]["instances_per_second"]) > 0.0);
    }
}

#[test]
fn a_tuned_preset_is_one_that_runs() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let tune =
        ["tune", "sb/SB+rlx-rlx", "--device", driver, "--time", "1s", "--seed", "7", "--out", "t.toml"];
    let ran = Ran::of(vk_litmus(tune).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(folder.path().join("t.toml")).unwrap();
    assert!(text.contains("--seed 7") && text.contains("sb/SB+rlx-rlx: instances"), "{text}");
    let run = ["run", "sb/SB+rlx-rlx", "--device", driver, "--stress", "t.toml", "--instances", "1000", "-q"];
    let ran = Ran::of(vk_litmus(run).args(["--format", "json"]).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json_lines()[0]["stress"], "t.toml");
}
