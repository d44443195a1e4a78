//! What is served where.

use std::sync::Arc;

use daemon::picture::Picture;
use export::Asker;
use web::{Method, Metrics, Pages, Request, Response};

use crate::admin::{Admin, Deed};
use crate::document::json;
use crate::hub::Hub;
use crate::{assets, detail};

const JSON: &str = "application/json";

/// The page, and metrics beside it.
#[derive(Debug)]
pub struct Dashboard {
    hub: Arc<Hub>,
    metrics: Metrics,
    admin: Option<Admin>,
}

impl Dashboard {
    pub fn new(viewer: Asker<Picture>, metrics: Metrics, admin: Option<Admin>) -> Dashboard {
        Dashboard { hub: Arc::new(Hub::new(viewer, admin.is_some())), metrics, admin }
    }

    fn read(&self, request: &Request) -> Response {
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        match parts.as_slice() {
            // Not begun for who only wants to know whether it is there.
            ["api", "stream"] if request.method == Method::Head => Response::new("text/event-stream", ""),
            ["api", "stream"] => Response::events(Box::new(self.hub.watch())),
            ["api", "verdicts"] => {
                self.seen(|picture| Some(json(&detail::verdicts(picture, &mut self.hub.shelf()))))
            }
            ["api", "tenants", gpu, tenant] => self.seen(|picture| {
                detail::tenant(picture, &mut self.hub.shelf(), gpu, tenant).map(|detail| json(&detail))
            }),
            _ => assets::find(&request.path).unwrap_or_else(|| self.metrics.page(request)),
        }
    }

    fn seen(&self, text: impl FnOnce(&Picture) -> Option<String>) -> Response {
        let Some(picture) = self.hub.picture() else {
            return Response::because(503, "The daemon does not answer.");
        };
        match text(&picture) {
            Some(text) => Response::new(JSON, text),
            None => Response::because(404, "There is no such tenant any more."),
        }
    }

    fn change(&self, request: &Request) -> Response {
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        let (tenant, deed) = match parts.as_slice() {
            ["api", "tenants", _, tenant, "pause"] => (*tenant, Deed::Pause),
            ["api", "tenants", _, tenant, "resume"] => (*tenant, Deed::Resume),
            _ => return Response::read_only(),
        };
        let Some(admin) = &self.admin else {
            let sentence =
                "Nothing can be changed here: the configuration names no admin_token_file under [dashboard].";
            return Response::because(403, sentence);
        };
        if !is_from_here(request) {
            return Response::because(403, "This comes from the page of somebody else.");
        }
        if !admin.admits(request.authorization.as_deref()) {
            return Response::because(401, "This is not the token.").with("WWW-Authenticate", "Bearer");
        }
        match admin.change(deed, tenant) {
            Ok(changed) => Response::new(JSON, json(&changed)),
            Err(error) => Response::because(409, &error.to_string()),
        }
    }
}

impl Pages for Dashboard {
    fn page(&self, request: &Request) -> Response {
        match request.method {
            Method::Get | Method::Head => self.read(request),
            Method::Post => self.change(request),
        }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.hub.close();
    }
}

/// A browser says from whose page something comes. Programs say nothing, and know the secret.
fn is_from_here(request: &Request) -> bool {
    let Some(origin) = &request.origin else { return true };
    let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    name.is_some() && name == request.host.as_deref()
}
