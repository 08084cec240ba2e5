//! `codegen`: the machine code that drivers make of tests.

mod targets;

use codegen::{Form, Sizes, Unit, form, units};
use litmus::convert::guarded;
use runner::Variant;
use runner::pool::{self, Calls, End, Event, Limits};
use std::ops::ControlFlow;

use crate::arguments::Codegen;
use crate::compiling::{Answer, Job, Kernel};
use crate::exit::{Failure, Outcome};
use crate::inputs;
use crate::output::Data;
use targets::Target;

/// Runs the command.
///
/// # Errors
/// What ended it before anything was compiled.
pub fn codegen(arguments: &Codegen, _quiet: bool) -> Result<Outcome, Failure> {
    let targets = targets::targets(arguments)?;
    let sources =
        inputs::collect(&arguments.tests, arguments.suite.as_deref(), None, || inputs::of_suite("quick"))?;
    let forms = if arguments.form.is_empty() { Form::ALL.to_vec() } else { arguments.form.clone() };
    let mut data = Data::new();
    let program = std::env::current_exe().map_err(Failure::environment_error)?;
    for source in sources {
        let loaded = source.load().map_err(|rejected| {
            let (s, r) = *rejected;
            r.failure(&s.file)
        })?;
        let variant: Variant = loaded.source.variant.parse().map_err(Failure::input_error)?;
        let test = guarded(&loaded.test);
        for target in &targets {
            let capabilities = &target.listed.capabilities;
            let sizes = Sizes {
                subgroup_size: capabilities.subgroup_size,
                max_workgroup_invocations: capabilities.max_workgroup_invocations,
                device_scope: capabilities.device_scope,
                lanes: arguments.lanes,
            };
            let mut all: Vec<Unit> = Vec::new();
            for form in &forms {
                match units(&test, *form, variant.told, &sizes) {
                    Ok(units) => all.extend(units),
                    Err(error) => data.print(&format!("{} {form}: {error}\n", loaded.source.id))?,
                }
            }
            let job = Job {
                device: target.selector.clone(),
                kernels: all.iter().map(Kernel::new).collect(),
                forms: false,
                misbehave: None,
            };
            let mut texts = Vec::new();
            pool::run(
                &Limits::DEFAULT,
                1,
                Calls::<Job, (), Answer> {
                    command: &mut || target.command(&program),
                    job: &mut |_, _| job.clone(),
                    event: &mut |event| {
                        if let Event::Finished(report) = event {
                            match report.last.end {
                                End::Answered(answer) => {
                                    if let Some(f) = answer.failure {
                                        texts.push(format!("{f:?}"));
                                    }
                                    for (unit, compiled) in all.iter().zip(answer.kernels) {
                                        texts.push(format!(
                                            "=== {} {} {} {} {:?} {} us\n{}\n",
                                            loaded.source.id,
                                            target.name,
                                            unit.form,
                                            unit.name,
                                            unit.role,
                                            compiled.micros,
                                            compiled.assembly()
                                        ));
                                    }
                                }
                                other => texts.push(format!("{other:?}")),
                            }
                        }
                        ControlFlow::Continue(())
                    },
                },
            );
            data.print(&texts.concat())?;
        }
    }
    let _ = form::PLAIN;
    Ok(Outcome::Success)
}
