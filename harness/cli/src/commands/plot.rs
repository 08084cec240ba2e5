//! `plot`: histograms of tests as a picture, with their numbers.

use std::path::{Path, PathBuf};

use campaign::rejudge::OtherVersionPolicy;
use campaign::run_log::DEFAULT_OUTPUT_FOLDER;
use results::report::{Report, TestRow};
use results::write::histograms::{PictureSize, draw_histograms, histogram_csv};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::FaceInfo;
use resvg::usvg::{Options, Tree};

use super::report::read_all;
use crate::arguments::Plot;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, print_message, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if an input is not a result, no test has outcomes, or the picture cannot be written.
pub fn plot(arguments: &Plot, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let paths = match arguments.results.as_slice() {
        [] => vec![newest_results()?],
        named => named.to_vec(),
    };
    let report = Report::new(&read_all(&paths, OtherVersionPolicy::Dropped, &mut outcome)?);
    let pattern = litmus::suite::glob_set([arguments.test.as_str()]).map_err(Failure::input_error)?;
    let rows: Vec<&TestRow> =
        report.tests.iter().filter(|row| row.id == arguments.test || pattern.is_match(&row.id)).collect();
    let Some(picture) = draw_histograms(&report, &rows, arguments.size, arguments.theme) else {
        return Err(Failure::input_message(format!(
            "no outcomes of `{}` in these results: `vk-litmus run {} --out DIR` runs it",
            arguments.test, arguments.test
        )));
    };
    let name = arguments.test.replace(|c: char| !c.is_ascii_alphanumeric() && !"+-_.".contains(c), "-");
    // With `plot TEST > FILE`, the picture is the contents of FILE.
    let is_redirected = Path::new("/dev/stdout").is_file();
    let default = || if is_redirected { "-".into() } else { format!("{name}.svg").into() };
    let out = arguments.out.clone().unwrap_or_else(default);
    if out.as_os_str() == "-" {
        return StandardOutput::new().print(&picture).map(|()| outcome);
    }
    match out.extension().and_then(|extension| extension.to_str()) {
        Some("png") => write_file(&out, &render_png(&picture, arguments.size)?)?,
        Some("svg") => write_file(&out, picture.as_bytes())?,
        _ => {
            let problem = format!("{}: expected a name that ends in .svg or .png", out.display());
            return Err(Failure::input_message(problem));
        }
    }
    let numbers = out.with_extension("csv");
    write_file(&numbers, histogram_csv(&report, &rows).as_bytes())?;
    if !quiet {
        print_message(&format!("picture in {}, numbers in {}", out.display(), numbers.display()));
    }
    Ok(outcome)
}

/// Renders a picture with the fonts of this machine: a slide pixel by pixel, a column with 400 dots per inch.
fn render_png(picture: &str, size: PictureSize) -> Result<Vec<u8>, Failure> {
    let scale = match size {
        PictureSize::Slide => 1.0,
        PictureSize::Column => 4.0,
    };
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    // The first installed font of the families in the picture, or else this one.
    let is_sans =
        |face: &&FaceInfo| !face.monospaced && face.families.iter().any(|(name, _)| name.contains("Sans"));
    let faces = || options.fontdb.faces();
    let Some((family, _)) =
        faces().find(is_sans).or(faces().next()).and_then(|face| face.families.first().cloned())
    else {
        let problem = "a PNG needs a font, and this machine has none: install one, such as Debian's fonts-dejavu-core, or write .svg";
        return Err(Failure::environment_message(problem.to_owned()));
    };
    options.fontdb_mut().set_sans_serif_family(family);
    let tree = Tree::from_str(picture, &options).map_err(Failure::environment_error)?;
    let scaled = tree.size().to_int_size().scale_by(scale);
    let Some(mut pixels) = scaled.and_then(|size| Pixmap::new(size.width(), size.height())) else {
        return Err(Failure::environment_message(
            "the picture is too large for a PNG: write .svg".to_owned(),
        ));
    };
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(Failure::environment_error)
}

/// Returns the newest results folder of runs without `--out`. Their names are the times.
fn newest_results() -> Result<PathBuf, Failure> {
    let folders = std::fs::read_dir(Path::new(DEFAULT_OUTPUT_FOLDER)).into_iter().flatten().flatten();
    folders.map(|entry| entry.path()).max().ok_or_else(|| {
        Failure::input_message(format!(
            "no results in {DEFAULT_OUTPUT_FOLDER}: name a results folder after the test"
        ))
    })
}
