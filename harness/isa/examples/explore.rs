//! Explores machine text: `explore FAMILY TEXTS SUFFIX TEST…`, where `TEXTS/NAME@FORM.N.SUFFIX` is the text of kernel N.

#[path = "../tests/explorer/bridge.rs"]
mod bridge;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use isa::{Facts, Family, Profile, Verdict};
use shaders::Pipelines;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let family: Family = args.next().ok_or("family")?.parse()?;
    let texts = args.next().ok_or("texts")?;
    let suffix = args.next().ok_or("suffix")?;
    let variant: shaders::Variant = std::env::var("VARIANT").unwrap_or_default().parse()?;
    let verbose = std::env::var_os("VERBOSE").is_some();
    let facts = Facts::shipped()?;
    let model =
        model::Model::shipped("vulkan-nochains").ok_or("model")?.map_err(|errors| errors.to_string())?;
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut spent = Duration::ZERO;
    let mut explored = 0;
    for file in args {
        let text = std::fs::read_to_string(&file)?;
        let name = std::path::Path::new(&file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(test) = litmus::parse(&text, &name) else { continue };
        let test = litmus::convert::guarded(&test);
        for (form, pipelines) in [("merged", Pipelines::Merged), ("split", Pipelines::Split)] {
            let Ok(program) = bridge::kernels(&test, variant, pipelines) else { continue };
            let mut read = Vec::new();
            let mut missing = false;
            for number in 0..program.kernels().count() {
                match std::fs::read_to_string(format!("{texts}/{name}@{form}.{number}.{suffix}")) {
                    Ok(text) => read.push(text),
                    Err(_) => missing = true,
                }
            }
            if missing {
                continue;
            }
            let Ok(prediction) = model::predict(&test, &model, &model::Options::default()) else { continue };
            let racy = prediction.race != litmus::Race::Free;
            let began = Instant::now();
            let parsed: Result<Vec<_>, _> = read.iter().map(|text| isa::parse(text)).collect();
            let parsed = match parsed {
                Ok(parsed) => parsed,
                Err(error) => {
                    *counts.entry(format!("{form} unread")).or_default() += 1;
                    println!("{name}@{form}: {error}");
                    continue;
                }
            };
            let question = match bridge::question(&test, &program, &parsed, &family, &prediction) {
                Ok(question) => question,
                Err(why) => {
                    *counts.entry(format!("{form} {why}")).or_default() += 1;
                    continue;
                }
            };
            for profile in [Profile::Documented, Profile::Paranoid] {
                let verdict = isa::explore(&question, profile, &facts);
                let racy = if racy { " racy" } else { "" };
                *counts.entry(format!("{form} {profile} {}{racy}", verdict.word())).or_default() += 1;
                match &verdict {
                    Verdict::Unsupported(what) => println!("{name}@{form}: {what}"),
                    Verdict::Hazard(what) => println!("{name}@{form}: {what}"),
                    Verdict::Reachable(witness) if racy.is_empty() => {
                        println!("{name}@{form} {profile}: reachable {:?}", witness.outcome);
                        if verbose {
                            println!("  {:?}\n  {:?}", witness.placement, witness.explored.assumptions);
                            for step in &witness.steps {
                                println!(
                                    "  wg {} wave {} line {}: {}",
                                    step.workgroup, step.wave, step.line, step.what
                                );
                            }
                        }
                    }
                    Verdict::Unreachable(explored) if explored.states > 20_000 => {
                        println!(
                            "{name}@{form} {profile}: {} states, {} placements",
                            explored.states, explored.placements
                        );
                    }
                    _ => {}
                }
            }
            spent += began.elapsed();
            explored += 2;
        }
    }
    println!("{counts:#?}\n{explored} in {spent:?}");
    Ok(())
}
