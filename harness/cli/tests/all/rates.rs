//! `bench` and `tune` on the installed software drivers, with a fraction of their default time.

use serde_json::Value;

use crate::common::{Ran, assert_valid, schemas, software_drivers, vk_litmus};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn a_bench_is_valid_and_its_rates_are_those_of_its_runs() {
    for driver in software_drivers() {
        let ran =
            Ran::run(&mut vk_litmus(["bench", "--device", driver, "--format", "json", "--scale", "0.05"]));
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
            let total: u64 =
                run["outcomes"].as_array().unwrap().iter().map(|seen| seen["count"].as_u64().unwrap()).sum();
            assert_eq!(run["instances"], total, "{run}");
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

/// The environment of a user compared with that of the device, on the simulated GPU, whose results depend
/// only on the seed.
#[test]
fn environments_are_measured_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let preset = include_str!("../../../runner/presets/sim.toml");
    let parallel = preset.replace("calibrate = false", "calibrate = false\nparallel = true");
    std::fs::write(folder.path().join("parallel.toml"), &parallel).unwrap();
    let tests = ["mp/MP+rlx-rlx", "mp/MP+rel-acq", "mp/MP+rel-rlx", "sb/SB+rlx-rlx"];
    let bench =
        ["bench", "--device", "sim", "--stress", "parallel.toml,sim", "--time", "2s", "--format", "json"];
    let ran = Ran::run(vk_litmus(bench).args(tests).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["tests"], &report["mutants"]), (&3.into(), &2.into()), "{report}");
    let environments = report["environments"].as_array().unwrap();
    let names: Vec<&Value> = environments.iter().map(|of| &of["name"]).collect();
    assert_eq!(names, ["sim", "parallel.toml"]);
    for (place, of) in environments.iter().enumerate() {
        assert_eq!((&of["killed"], &of["ran"]), (&2.into(), &3.into()), "{of}");
        assert_eq!(of["stress"].as_str().unwrap().contains("parallel = true"), place == 1);
        let (mut weak, mut seconds, mut deaths) = (0.0, 0.0, 0.0);
        for row in report["rows"].as_array().unwrap() {
            let cell = &row["environments"][place];
            assert_eq!((&cell["error"], &cell["forbidden"]), (&Value::Null, &0.into()), "{row}");
            assert_eq!((&cell["not_executed"], &cell["unresolved"]), (&0.into(), &0.into()), "{row}");
            (weak, seconds) = (weak + number(&cell["weak"]), seconds + number(&cell["seconds"]));
            if row["mutant_of"] != serde_json::json!([]) {
                assert_eq!(row["mutant_of"], serde_json::json!(["mp/MP+rel-acq"]));
                deaths += number(&cell["deaths"]) / number(&cell["seconds"]) / 2.0;
            }
        }
        assert!((number(&of["weak_per_second"]) - weak / seconds).abs() < 1e-6 * weak / seconds);
        assert!(deaths > 0.0 && (number(&of["deaths_per_second"]) - deaths).abs() < 1e-6 * deaths);
        let ratio = number(&of["deaths_per_second"]) / number(&environments[0]["deaths_per_second"]);
        assert!((number(&of["deaths_ratio"]) - ratio).abs() < 1e-9);
    }
    let unknown = ["bench", "--device", "sim", "--stress", "warp"];
    assert_eq!(Ran::run(&mut vk_litmus(unknown)).code, 2);
    let synchronized = ["bench", "--device", "sim", "--stress", "sim", "mp/MP+rel-acq"];
    let ran = Ran::run(&mut vk_litmus(synchronized));
    assert_eq!((ran.code, ran.messages().contains("no test among these")), (2, true), "{ran:?}");
}

#[test]
fn a_preset_learnt_from_a_suite_is_judged_by_tests_that_it_did_not_see() {
    let folder = tempfile::tempdir().unwrap();
    let tune =
        ["tune", "--suite", "quick", "--device", "sim", "--time", "4s", "--seed", "7", "--out", "t.toml"];
    let ran = Ran::run(vk_litmus(tune).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let hasty = tune.map(|word| if word == "4s" { "100ms" } else { word });
    let refused = Ran::run(vk_litmus(hasty).current_dir(folder.path()));
    assert_eq!(
        (refused.code, refused.messages().contains("takes at least 1s 320ms")),
        (2, true),
        "{refused:?}"
    );
    let line_with = |what: &str| ran.stdout.lines().find(|line| line.contains(what)).unwrap().to_owned();
    let (learnt, unseen) = (line_with("used for tuning"), line_with("not used for tuning"));
    let count = |line: &str| line.split(' ').next().unwrap().parse::<usize>().unwrap();
    let text = std::fs::read_to_string(folder.path().join("t.toml")).unwrap();
    assert!(text.contains(&learnt) && text.contains(&unseen), "{text}");
    let tests: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("#   ")?.split(": ").next()).collect();
    assert_eq!(tests.len(), count(&learnt) + count(&unseen));
    let families = |tests: &[&str]| -> std::collections::BTreeSet<String> {
        tests.iter().map(|id| id.split('/').next().unwrap().to_owned()).collect()
    };
    let (learnt_tests, there) = tests.split_at(count(&learnt));
    assert!(!learnt_tests.is_empty() && !there.is_empty(), "{text}");
    assert!(families(learnt_tests).is_disjoint(&families(there)), "{text}");
    let run = ["run", "sb/SB+rlx-rlx", "--device", "sim", "--stress", "t.toml", "--instances", "1000", "-q"];
    assert_eq!(Ran::run(vk_litmus(run).current_dir(folder.path())).code, 0);
}
