//! Names of progress models.

use model::progress::{PROGRESS_GUARANTEES, ProgressGuarantee, ProgressModel, ProgressModelError};

#[test]
fn models_are_read_and_written() {
    for (name, promise) in PROGRESS_GUARANTEES {
        assert_eq!(name.parse(), Ok(ProgressModel::uniform(promise)));
        assert_eq!(ProgressModel::uniform(promise).to_string(), name);
    }
    let mixed: ProgressModel = "qf=obe,sg=hsa".parse().unwrap();
    assert_eq!((mixed.queue_family, mixed.workgroup), (ProgressGuarantee::Obe, ProgressGuarantee::Fair));
    assert_eq!(mixed.to_string(), "qf=obe,wg=fair,sg=hsa");
    assert_eq!(mixed.to_string().parse(), Ok(mixed));
}

#[test]
fn unknown_words_are_named() {
    let error = |text: &str| text.parse::<ProgressModel>().unwrap_err();
    assert_eq!(error("fairly"), ProgressModelError::UnknownModel("fairly".to_owned()));
    assert_eq!(error("qf=obe,sg"), ProgressModelError::UnknownModel(String::new()));
    assert_eq!(error("dv=obe"), ProgressModelError::UnknownLevel("dv".to_owned()));
    assert_eq!(error("qf=obe,qf=hsa"), ProgressModelError::DuplicateLevel("qf".to_owned()));
}
