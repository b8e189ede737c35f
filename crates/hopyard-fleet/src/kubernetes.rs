//! Pods of Kubernetes as endpoints, and a Job that makes such pods.
//!
//! Both ways the user's own `kubectl` talks to the cluster: it applies the Job, lists the pods and runs the workers. hopyard has no
//! credentials, and schedules nothing but pairs: placement, retries and accounting are those of the Job.

use std::fmt::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use hopyard_lab::Prefix;
use hopyard_model::plain;
use serde::Deserialize;

use crate::endpoints::{self, Endpoint};
use crate::error::{Error, Result};

/// Where a pod of an Indexed Job says which one it is. The pod that takes its place after a failure says the same.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The label with the name of the Job, and what it was before Kubernetes 1.27.
const JOB: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];
/// Where a node stands; pods have it from Kubernetes 1.35 on.
const ZONE: &str = "topology.kubernetes.io/zone";

#[derive(Deserialize)]
struct List {
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
    #[serde(rename = "deletionTimestamp", default)]
    deletion: Option<String>,
}

#[derive(Deserialize, Default)]
struct Spec {
    #[serde(rename = "nodeName", default)]
    node: Option<String>,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    phase: String,
    #[serde(rename = "podIP", default)]
    address: Option<IpAddr>,
}

/// The pods that a command lists, as `kubectl get pods -l app=x -o json` does.
///
/// # Errors
/// The command fails or lists no pods; one of them does not run yet; or they are not two or more.
pub fn pods(command: &str) -> Result<Vec<Endpoint>> {
    let wrong = |why: String| Error::Wrong(format!("--pods `{}`: {why}", plain::line(command)));
    let prefix: Prefix = command.parse().map_err(|e| wrong(format!("{e}")))?;
    let words = prefix.words();
    let program = words
        .iter()
        .position(|word| word == "get")
        .filter(|at| *at > 0);
    let program = program.ok_or_else(|| {
        wrong("it has no word `get`: give the command that lists the pods, as in `kubectl get pods -l app=x -o json`".to_owned())
    })?;
    let output = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| {
            wrong(format!(
                "cannot start `{}`: {e}; put it into PATH",
                words[0]
            ))
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(wrong(format!("it failed: {}", plain::line(said.trim()))));
    }
    let list: List = serde_json::from_slice(&output.stdout).map_err(|e| {
        wrong(format!(
            "it prints no list of pods as JSON (`-o json`): {e}"
        ))
    })?;
    let endpoints = of(list, &words[..program]).map_err(wrong)?;
    endpoints::check(&endpoints, endpoints::FOR_PAIRS).map_err(wrong)?;
    Ok(endpoints)
}

/// Pods that run, by name. `kubectl` is the command without what it is to do.
fn of(list: List, kubectl: &[String]) -> std::result::Result<Vec<Endpoint>, String> {
    let mut endpoints = Vec::new();
    for pod in list.items {
        let name = pod.metadata.name;
        match &pod.status.phase[..] {
            // What a Job has ended or given up is no part of the fleet any more.
            _ if pod.metadata.deletion.is_some() => continue,
            "Succeeded" | "Failed" => continue,
            "Running" => {}
            phase => {
                return Err(format!(
                    "pod `{}` is {}: wait until all run, as by `kubectl wait --for=condition=Ready pod -l …`",
                    plain::line(&name),
                    plain::line(phase)
                ));
            }
        }
        let label = |key: &str| pod.metadata.labels.get(key).cloned();
        let of_job = JOB
            .iter()
            .find_map(|key| label(key))
            .zip(pod.metadata.annotations.get(INDEX));
        let mut words: Vec<&str> = kubectl.iter().map(|word| &word[..]).collect();
        words.extend(["exec", "-i"]);
        if let Some(namespace) = &pod.metadata.namespace {
            words.extend(["-n", namespace]);
        }
        words.extend([&name[..], "--"]);
        endpoints.push(Endpoint {
            name: of_job.map_or_else(|| name.clone(), |(job, index)| format!("{job}-{index}")),
            connect: shlex::try_join(words).map_err(|e| e.to_string())?,
            address: pod.status.address,
            rack: label(ZONE).or(pod.spec.node).map(shortened),
            kind: None,
        });
    }
    // By number where they have one, so that a pod that took another's place has its place too.
    let key = |e: &Endpoint| {
        let number = e
            .name
            .rsplit('-')
            .next()
            .and_then(|n| n.parse::<u32>().ok());
        (number, e.name.clone())
    };
    endpoints.sort_by_key(key);
    Ok(endpoints)
}

/// A node may have a longer name than a rack, which is only shown.
fn shortened(mut rack: String) -> String {
    rack.truncate(rack.floor_char_boundary(endpoints::LONGEST_NAME));
    rack
}

/// What a Job of endpoints is made from.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name of the Job.
    pub name: String,
    /// Image of its pods: one with a shell, `sleep`, `mktemp`, `head` and `sha256sum`.
    pub image: String,
    /// Namespace; the user's default where none is given.
    pub namespace: Option<String>,
    /// Number of pods.
    pub pods: u16,
    /// All of them end then, whatever became of whoever wanted them.
    pub deadline: Duration,
    /// Do pods use the networks of their nodes instead of their own?
    pub host_network: bool,
}

impl Manifest {
    /// As YAML, for `kubectl apply -f -`.
    ///
    /// # Errors
    /// A name is none that Kubernetes takes.
    pub fn yaml(&self) -> Result<String> {
        for (what, name) in [
            ("the Job", Some(&self.name)),
            ("the namespace", self.namespace.as_ref()),
        ] {
            if let Some(name) = name.filter(|name| !is_dns_label(name)) {
                return Err(Error::Wrong(format!(
                    "`{}` cannot be the name of {what}: Kubernetes takes a to z, 0 to 9 and `-`, at most 63, the first and the last no `-`",
                    plain::line(name)
                )));
            }
        }
        if self.name.contains("--") {
            return Err(Error::Wrong(format!(
                "`{}` cannot be the name of the Job: its pods become endpoints, whose results are kept in directories CLIENT--SERVER",
                plain::line(&self.name)
            )));
        }
        if self.image.is_empty()
            || self
                .image
                .chars()
                .any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(Error::Wrong(format!(
                "`{}` is no name of an image",
                plain::line(&self.image)
            )));
        }
        if self.pods < 2 || usize::from(self.pods) > endpoints::MOST_ENDPOINTS {
            return Err(Error::Wrong(format!(
                "a fleet has 2 to {} pods, not {}",
                endpoints::MOST_ENDPOINTS,
                self.pods
            )));
        }
        Ok(self.written())
    }

    fn written(&self) -> String {
        let Self { name, pods, .. } = self;
        let seconds = self.deadline.as_secs().max(1);
        // A string in JSON is one in YAML.
        let image = serde_json::Value::from(&self.image[..]);
        let mut text = format!(
            "# {pods} pods, each on a node of its own, as endpoints of `hopyard fleet`. They do nothing but wait; workers come by `kubectl exec`.\n\
             #   kubectl apply -f -\n\
             #   kubectl wait --for=condition=Ready pod -l job-name={name} --timeout=5m\n\
             #   hopyard fleet run --pods 'kubectl get pods -l job-name={name} -o json' -o DIR\n\
             #   kubectl delete job {name}\n\
             apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n"
        );
        if let Some(namespace) = &self.namespace {
            let _ = writeln!(text, "  namespace: {namespace}");
        }
        let _ = write!(
            text,
            "  labels:\n    app.kubernetes.io/name: hopyard\nspec:\n\
             \x20 # Each pod has a number that stays when another takes its place, so that `--resume` finds it again.\n\
             \x20 completionMode: Indexed\n  completions: {pods}\n  parallelism: {pods}\n  backoffLimit: {pods}\n\
             \x20 activeDeadlineSeconds: {seconds}\n  ttlSecondsAfterFinished: 600\n  template:\n    metadata:\n      labels:\n\
             \x20       app.kubernetes.io/name: hopyard\n    spec:\n      restartPolicy: Never\n\
             \x20     automountServiceAccountToken: false\n      terminationGracePeriodSeconds: 1\n"
        );
        if self.host_network {
            text += "      hostNetwork: true\n";
        }
        let _ = write!(
            text,
            "      affinity:\n        podAntiAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n\
             \x20         - topologyKey: kubernetes.io/hostname\n            labelSelector:\n              matchLabels:\n\
             \x20               job-name: {name}\n      containers:\n      - name: endpoint\n        image: {image}\n\
             \x20       command: [\"sleep\", \"{seconds}\"]\n        securityContext:\n          allowPrivilegeEscalation: false\n"
        );
        text
    }
}

/// RFC 1123, as names of Jobs and namespaces are.
fn is_dns_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(fits)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> std::result::Result<Vec<Endpoint>, String> {
        let kubectl = ["kubectl", "--context", "a b"].map(str::to_owned);
        of(serde_json::from_str(text).unwrap(), &kubectl)
    }

    #[test]
    fn pods_that_run_are_endpoints_in_the_order_of_their_numbers() {
        let pod = |name: &str, index: &str, phase: &str| {
            format!(
                r#"{{"metadata":{{"name":"{name}","namespace":"lab","labels":{{"job-name":"job"}},
                 "annotations":{{"{INDEX}":"{index}"}}}},"spec":{{"nodeName":"node{index}"}},
                 "status":{{"phase":"{phase}","podIP":"10.0.0.{index}"}}}}"#
            )
        };
        let of = |pods: &[String]| {
            listed(&format!(
                r#"{{"kind":"List","items":[{}]}}"#,
                pods.join(",")
            ))
        };
        let all = [
            pod("job-10-x7", "10", "Running"),
            pod("job-2-aa", "2", "Failed"),
            pod("job-2-bb", "2", "Running"),
        ];
        let found = of(&all).unwrap();
        let names: Vec<&str> = found.iter().map(|e| &e.name[..]).collect();
        assert_eq!(names, ["job-2", "job-10"]);
        assert_eq!(
            found[0].connect,
            "kubectl --context 'a b' exec -i -n lab job-2-bb --"
        );
        assert_eq!(found[0].address, Some([10, 0, 0, 2].into()));
        assert_eq!(found[0].rack.as_deref(), Some("node2"));
        let waits = of(&[pod("job-1-x", "1", "Pending")]).unwrap_err();
        assert!(
            waits.contains("`job-1-x` is Pending") && waits.contains("kubectl wait"),
            "{waits}"
        );
    }

    #[test]
    fn names_that_kubernetes_would_refuse_are_refused() {
        let job = |name: &str, image: &str, pods| {
            Manifest {
                name: name.to_owned(),
                image: image.to_owned(),
                namespace: None,
                pods,
                deadline: Duration::from_secs(60),
                host_network: true,
            }
            .yaml()
            .map_err(|e| e.to_string())
        };
        for (name, image, pods) in [
            ("A", "i", 2),
            ("a-", "i", 2),
            ("", "i", 2),
            ("a", "i j", 2),
            ("a", "", 2),
            ("a", "i", 1),
        ] {
            assert!(job(name, image, pods).is_err(), "{name} {image} {pods}");
        }
        let text = job("night", "debian:13\"", 8).unwrap();
        assert!(
            text.contains("image: \"debian:13\\\"\"") && text.contains("completions: 8"),
            "{text}"
        );
        assert!(text.contains("hostNetwork: true"));
    }
}
