//! The list commands: devices, models, faults, tests; and completion scripts and manual pages.

use std::collections::BTreeSet;

use campaign::probe::{self, FoundDevice};
use campaign::shader::source::{KnownCompiler, known_compilers};
use campaign::{cts, inputs, similar};
use clap_complete::Shell;
use litmus::corpus::{self, EmbeddedFile};
use model::Model;
use plan::{Feature, Identity};
use results::wire::{CtsEntry, FaultEntry, ModelEntry, TestEntry};
use sim::{ExpectedEffect, FAULTS};

use crate::arguments::{Compilers, Devices, ListFormat, Models, Tests};
use crate::commands::coverage;
use crate::exit::{Failure, Outcome};
use crate::output::{print_as, print_json, print_message, print_text};
use crate::{completion, help};

/// Prints the compilers of shaders, in the order in which they are tried.
///
/// # Errors
/// Returns an error if temporary files cannot be created, or the output fails.
pub fn print_compilers(arguments: &Compilers) -> Result<Outcome, Failure> {
    let compilers = known_compilers().map_err(Failure::environment_error)?;
    if arguments.format == ListFormat::Json {
        return print_json(&compilers);
    }
    let mut text = String::new();
    for KnownCompiler { language, program, path, version, rejects, problem, install_hint } in &compilers {
        let place = match (path.as_ref().zip(version.as_ref()), problem) {
            (None, _) => format!("not installed: {install_hint}"),
            (Some((path, _)), Some(problem)) => {
                let problem = results::escape::escape_line(problem);
                format!("compiles no shader ({}): {problem}; expected {install_hint}", path.display())
            }
            (Some((path, version)), None) => {
                let version = if version.is_empty() { "version unknown" } else { version };
                format!("{} ({})", results::escape::escape_line(version), path.display())
            }
        };
        text += &format!("{language:<9} {program:<17} {place}\n");
        if !rejects.is_empty() && problem.is_none() {
            text += &format!("{:<9} cannot compile: {}\n", "", rejects.join(", "));
        }
    }
    print_text(&text)
}

/// Prints the devices, on request with the compile-only ones.
///
/// # Errors
/// Returns an error if the output fails.
pub fn print_devices(arguments: &Devices) -> Result<Outcome, Failure> {
    let (devices, driver_problems) = probe::list_devices(&probe::driver_environment(&[])?, &[])?;
    if let Some(why) = driver_problems.describe() {
        print_message(&why);
    }
    let mut devices: Vec<FoundDevice> = devices
        .into_iter()
        .map(|d| FoundDevice { index: d.index, identity: d.identity, capabilities: d.capabilities })
        .collect();
    let mut missing = Vec::new();
    if arguments.compile_only {
        let mesas = probe::find_mesas(None)?;
        let compile_only = probe::list_compile_only(&mesas);
        missing = probe::describe_missing_vendors(&mesas, &compile_only);
        for device in compile_only {
            let identity = Identity { name: device.name(), ..device.listed.identity };
            let capabilities = device.listed.capabilities;
            devices.push(FoundDevice { index: devices.len(), identity, capabilities });
        }
    }
    if arguments.format == ListFormat::Json {
        return print_json(&devices);
    }
    let mut text = String::new();
    for FoundDevice { index, identity, capabilities } in &devices {
        // Names from drivers are untrusted text.
        let [name, kind, device_name, driver_name, driver_info, api_version, uuid] = [
            &identity.name,
            &identity.kind,
            &identity.device_name,
            &identity.driver_name,
            &identity.driver_info,
            &identity.api_version,
            &identity.uuid,
        ]
        .map(|text| results::escape::escape_line(text));
        if !capabilities.executes {
            // One line per device, because there are dozens of them.
            text += &format!("{index}: {name} ({kind})\n");
            continue;
        }
        let features = [
            Feature::VulkanMemoryModel,
            Feature::VulkanMemoryModelDeviceScope,
            Feature::VulkanMemoryModelAvailabilityVisibilityChains,
        ];
        text += &format!("{index}: {name} ({kind})\n");
        text += &format!("   {device_name}\n");
        // SwiftShader leaves one of them empty.
        let driver: Vec<&str> = [&driver_name, &driver_info].map(|text| text.trim()).to_vec();
        text += &format!(
            "   {}",
            driver.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
        );
        if !api_version.is_empty() {
            text += &format!(", Vulkan {api_version}, UUID {uuid}");
        }
        text.push('\n');
        text += &format!(
            "   subgroups of {}, workgroups of at most {}\n",
            capabilities.subgroup_size, capabilities.max_workgroup_invocations
        );
        let queues: Vec<String> = capabilities.compute_queues.iter().map(u32::to_string).collect();
        text += &format!("   compute queues of its queue families: {}\n", queues.join(", "));
        for feature in features {
            let has = capabilities.has_feature(feature);
            text += &format!("   {} {feature}\n", if has { "has" } else { "lacks" });
        }
    }
    if !missing.is_empty() {
        text += "missing compile-only devices:\n";
        for line in missing {
            text += &format!("   {line}\n");
        }
    }
    print_text(&text)
}

/// Prints the shipped models, or the text of one.
///
/// # Errors
/// Returns an error if the model does not exist or the output fails.
pub fn print_models(arguments: &Models) -> Result<Outcome, Failure> {
    if let Some(name) = &arguments.name {
        let Some(text) = Model::shipped_text(name)
            .filter(|_| Model::shipped_models().iter().any(|(known, _)| known == name))
        else {
            let names = Model::shipped_models().iter().map(|(known, _)| *known);
            let suggestion = similar::did_you_mean(name, names);
            return Err(Failure::input_message(format!(
                "unknown model `{name}`{suggestion}; `models` lists all"
            )));
        };
        if arguments.text {
            return print_text(&model_text(name, text)?);
        }
    }
    let is_chosen = |name: &str| arguments.name.as_deref().is_none_or(|chosen| chosen == name);
    let entry = |(name, description): &(&'static str, &'static str)| {
        let chosen = campaign::models::load(name)?;
        Ok(ModelEntry { name, description, hash: chosen.hash })
    };
    let chosen = Model::shipped_models().iter().filter(|(name, _)| is_chosen(name));
    let models: Vec<ModelEntry> = chosen.map(entry).collect::<Result<_, Failure>>()?;
    print_as(arguments.format, &models, |models| {
        let width = models.iter().map(|model| model.name.len()).max().unwrap_or(0);
        models.iter().map(|model| format!("{:width$}  {}\n", model.name, model.description)).collect()
    })
}

/// Returns the text of a model and of the files that it includes, with line numbers as in explanations.
fn model_text(name: &str, text: &str) -> Result<String, Failure> {
    let numbered = |file: &str, text: &str| {
        let lines = text.lines().enumerate().map(|(index, line)| format!("{:4}  {line}\n", index + 1));
        format!("{file}\n{}", lines.collect::<String>())
    };
    let mut out = numbered(&format!("{name}.cat"), text);
    let included = text.lines().filter_map(|line| line.trim().strip_prefix("include \"")?.split('"').next());
    for file in included {
        let stem = file.strip_suffix(".cat").unwrap_or(file);
        if let Some(text) = Model::shipped_text(stem) {
            out += &format!("\n{}", numbered(file, text));
        }
    }
    Ok(out)
}

/// Prints the faults of the simulated GPU.
///
/// # Errors
/// Returns an error if the output fails.
pub fn print_faults(format: ListFormat) -> Result<Outcome, Failure> {
    if format == ListFormat::Json {
        let faults: Vec<FaultEntry> = FAULTS
            .iter()
            .map(|row| FaultEntry {
                name: row.name,
                family: row.family,
                rule: row.rule,
                reference: row.reference,
                expect: row.expect.word(),
            })
            .collect();
        return print_json(&faults);
    }
    let mut text = String::new();
    for row in FAULTS.iter() {
        text += &format!("{} ({})\n   {}\n", row.name, row.expect.word(), row.rule);
        if let ExpectedEffect::Invisible(why) = row.expect {
            text += &format!("   invisible: {why}\n");
        }
        if let Some(reference) = row.reference {
            text += &format!("   as in {reference}\n");
        }
    }
    print_text(&text)
}

/// Prints the embedded tests.
///
/// # Errors
/// Returns an error if the output fails or no test matches.
pub fn print_tests(arguments: &Tests) -> Result<Outcome, Failure> {
    if !arguments.device.is_empty() {
        return coverage::print_coverage(&arguments.device, arguments.cts);
    }
    if arguments.cts {
        return list_cts(arguments.format);
    }
    let mut tests: Vec<EmbeddedFile> = corpus::tests()
        .into_iter()
        .chain(corpus::model_only_tests())
        .chain(corpus::progress_tests())
        .collect();
    if let Some(pattern) = &arguments.pattern {
        let globs: BTreeSet<String> =
            inputs::match_embedded(pattern).into_iter().map(|test| test.id).collect();
        let pattern = pattern.to_lowercase();
        tests.retain(|test| {
            let why = test.text.lines().filter_map(|line| line.strip_prefix("why:"));
            globs.contains(&test.id)
                || std::iter::once(test.id.as_str())
                    .chain(why)
                    .any(|text| text.to_lowercase().contains(&pattern))
        });
        if tests.is_empty() {
            return Err(Failure::input_message(format!(
                "no test has `{pattern}` in its id or reason (`tests` lists all)"
            )));
        }
    }
    let entry = |test: EmbeddedFile| TestEntry { id: test.id, file: format!("litmus/{}", test.path) };
    let tests: Vec<TestEntry> = tests.into_iter().map(entry).collect();
    print_as(arguments.format, &tests, |tests| tests.iter().map(|test| format!("{}\n", test.id)).collect())
}

/// Prints the CTS names with the ids of their tests.
fn list_cts(format: ListFormat) -> Result<Outcome, Failure> {
    if format == ListFormat::Json {
        let entry = |case: litmus::cts::CtsCase| CtsEntry {
            cts: format!("{}{case}", litmus::cts::NAME_PREFIX),
            id: cts::embedded_id(&case),
        };
        return print_json(&litmus::cts::all_cases().map(entry).collect::<Vec<_>>());
    }
    print_text(&cts::list_names())
}

/// Prints a completion script.
///
/// # Errors
/// Returns an error if the shell is not supported or the output fails.
pub fn print_completions(shell: Shell) -> Result<Outcome, Failure> {
    let name = shell.to_string();
    let script = completion::registration_script(&name)
        .ok_or_else(|| Failure::not_available(format!("completion in {name}")))?;
    print_text(&script)
}

/// Prints a manual page.
///
/// # Errors
/// Returns an error if the command does not exist or the output fails.
pub fn print_manual_page(command: Option<&str>) -> Result<Outcome, Failure> {
    let mut program = help::command();
    // `build` copies the global flags to the subcommands.
    program.build();
    let documented = match command {
        None => program,
        Some(name) => {
            let is_visible = |command: &&clap::Command| !command.is_hide_set();
            let found =
                program.get_subcommands().filter(is_visible).find(|command| command.get_name() == name);
            match found {
                Some(command) => command.clone(),
                None => {
                    let names: Vec<&str> =
                        program.get_subcommands().filter(is_visible).map(clap::Command::get_name).collect();
                    return Err(Failure::input_message(format!(
                        "unknown command `{name}`; expected one of: {}",
                        names.join(", ")
                    )));
                }
            }
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(documented).render(&mut page).map_err(Failure::environment_error)?;
    print_text(&String::from_utf8_lossy(&page))
}
