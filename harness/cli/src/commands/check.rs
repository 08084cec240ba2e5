//! `check`: the outcomes that a model allows, test by test.

mod executions;
mod page;

use campaign::check::{CheckModels, CheckOptions, Checked, checked, kernel};
use campaign::inputs;
use campaign::parallel::in_order;
use campaign::shader::source::is_shader;
use results::write::check_writer;

use crate::arguments::{Check, CheckFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print, reject, say};

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it early; a mistake in a single test is printed and does not.
pub fn check(arguments: &Check, quiet: bool) -> Result<Outcome, Failure> {
    if let Some(most) = arguments.executions {
        return executions::show(arguments, most as usize);
    }
    let asked = CheckOptions {
        inputs: arguments.kernel.inputs(),
        timeout: arguments.timeout,
        unroll: arguments.unroll,
        progress: arguments.progress.map(|model| (model, arguments.fairness)),
    };
    let CheckFormat::Answers(format) = arguments.format else {
        let shaders =
            !arguments.tests.is_empty() && arguments.tests.iter().all(|argument| is_shader(argument));
        if arguments.format == CheckFormat::Html && shaders && arguments.suite.is_none() {
            let models = CheckModels::load(arguments.model.as_deref())?;
            let options = arguments.kernel.options(arguments.unroll)?;
            return page::page(arguments, &options, &models.for_kernels()?.model, asked);
        }
        return Err(Failure::input_message(
            "this format needs --executions N; without it, html is for shaders only",
        ));
    };
    let mut writer = check_writer(format, Data::new()).map_err(Failure::input_error)?;
    let (kernels, tests): (Vec<String>, Vec<String>) =
        arguments.tests.iter().cloned().partition(|argument| is_shader(argument));
    let mut sources = inputs::collect(&tests, arguments.suite.as_deref(), None, || {
        Ok(if kernels.is_empty() { inputs::all_embedded() } else { Vec::new() })
    })?;
    if kernels.is_empty() && !arguments.kernel.is_empty() {
        return Err(Failure::input_message(
            "inputs of shaders (`--grid`, `--buffer` and others) need a shader file".to_owned(),
        ));
    }
    let models = CheckModels::load(arguments.model.as_deref())?;
    // Embedded tests that were not named are skipped if the model does not apply to them.
    if let Some(asked) = models.asked.as_ref().filter(|_| arguments.tests.is_empty()) {
        sources.retain(|source| source.suits(&asked.model));
    }
    let mut outcome = Outcome::Success;
    let (mut answered, mut rejected) = (0_usize, 0_usize);
    let mut take = |checked: Checked| match checked {
        Checked::Answered(line, warnings, says) => {
            answered += 1;
            outcome.note(says);
            warnings.iter().filter(|_| !quiet || says != Outcome::Success).for_each(|w| say(w));
            writer.answered(&line).map_err(cannot_print)
        }
        Checked::Rejected(no_test) => {
            rejected += 1;
            reject(&mut outcome, &no_test.failure);
            writer.rejected(&no_test.line).map_err(cannot_print)
        }
    };
    in_order(&sources, |source| checked(source.clone(), &models, asked), &mut take)?;
    if !kernels.is_empty() {
        let given = arguments.kernel.options(arguments.unroll)?;
        let chosen = models.for_kernels()?;
        let compilation = arguments.kernel.compilation()?;
        for file in &kernels {
            kernel::check(file, &compilation, &given, &chosen.model, asked)
                .into_iter()
                .try_for_each(&mut take)?;
        }
    }
    writer.finish().map_err(cannot_print)?;
    if rejected > 0 {
        say(&format!("{answered} tests answered, {rejected} rejected"));
    }
    Ok(outcome)
}
