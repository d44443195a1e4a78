use std::collections::HashSet;

use super::*;

fn read(text: &str) -> Result<Workload, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn names_say_everything_that_matters() {
    let id = |text: &str| read(text).unwrap().id();
    assert_eq!(id(r#"{"model":"vgg19"}"#), "vgg19-inference-eager-b1");
    assert_eq!(id(r#"{"model":"llama"}"#), "llama-inference-eager-b1-p512-o32");
    assert_eq!(id(r#"{"model":"bert","form":"graph","tokens":64}"#), "bert-inference-graph-b1-t64");
    assert_eq!(id(r#"{"model":"pointnet","batch":128}"#), "pointnet-training-eager-b128");
    assert_eq!(id(r#"{"model":"burst","launches":10,"blocks":132,"block":"20us"}"#), "burst-10x132x20us");
    let gaps = r#"{"model":"burst","launches":10,"blocks":132,"block":"20us","gap":"1500us"}"#;
    assert_eq!(id(gaps), "burst-10x132x20us-gap1500us");
    assert_eq!(id(r#"{"model":"grid","blocks":1056,"block":"5 ms"}"#), "grid-1056x5ms");
}

#[test]
fn a_worker_is_told_every_default_and_understands_it() {
    let mut texts: Vec<String> =
        MODELS.iter().map(|model| format!(r#"{{"model":"{}"}}"#, model.name)).collect();
    texts.extend([r#"{"model":"stencil"}"#, r#"{"model":"traversal"}"#].map(str::to_owned));
    texts.push(r#"{"model":"grid","blocks":1,"block":"15ns"}"#.to_owned());
    texts.push(r#"{"model":"burst","launches":2,"blocks":1,"block":"15us"}"#.to_owned());
    let mut ids = HashSet::new();
    for text in texts {
        let workload = read(&text).unwrap();
        let told = serde_json::to_string(&workload).unwrap();
        assert_eq!(read(&told).unwrap(), workload, "{told}");
        assert!(ids.insert(workload.id()), "{told}");
    }
    let told = serde_json::to_string(&read(r#"{"model":"llama"}"#).unwrap()).unwrap();
    assert_eq!(
        told,
        r#"{"model":"llama","task":"inference","form":"eager","batch":1,"prompt":512,"output":32}"#
    );
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let fails = |text: &str| read(text).unwrap_err();
    assert!(fails(r#"{"model":"vgg20"}"#).contains("`vgg20` is no model; known are vgg19, "));
    assert!(fails(r#"{"model":"vgg19","tokens":3}"#).contains("besides model it may have task, form, batch"));
    assert!(fails(r#"{"model":"stencil","batch":3}"#).contains("no keys but model"));
    assert!(fails(r#"{"model":"yolo","task":"training"}"#).contains("can do only inference"));
    assert!(fails(r#"{"model":"bert","task":"training","form":"graph"}"#).contains("eager or compile"));
    assert!(fails(r#"{"model":"grid","block":"5ms"}"#).contains("`blocks` is missing"));
    assert!(fails(r#"{"model":"grid","blocks":0,"block":"5ms"}"#).contains("between 1 and"));
    assert!(fails(r#"{"model":"grid","blocks":1,"block":"5"}"#).contains("is no time"));
    assert!(fails(r#"{"model":"grid","blocks":1,"block":"2s"}"#).contains("2 s is not between"));
    assert!(fails(r#"{"model":"bert","batch":0}"#).contains("batch is 0"));
    assert!(fails(r#"{"model":"bert","bach":1}"#).contains("unknown field `bach`"));
}
