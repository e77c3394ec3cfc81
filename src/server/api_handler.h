// The HTTP face of the control plane: `POST /` (ECS's JSON 1.1 and cotenant's own calls), `GET
// /healthz`, and the agents' WebSocket at /agent/v1.
//
// Who may talk to it, until authentication is there: requests with a loopback Host and without an
// Origin header. A browser page therefore cannot, whatever it resolves to.
#pragma once

#include "base/ids.h"
#include "ports/http.h"
#include "server/agent_hub.h"
#include "server/api_table.h"
#include "server/worker_pool.h"

namespace cotenant::server {

class ApiHandler final : public ports::HttpHandler {
 public:
  ApiHandler(CoreLoop& loop, AgentHub& hub, base::ArnFormat arns);

  void handle(ports::HttpRequest request, ports::HttpResponder respond) override;
  std::shared_ptr<ports::WebSocketListener> upgrade(const ports::HttpRequest& request) override;

 private:
  ports::HttpResponse answer(const ports::HttpRequest& request);
  ports::HttpResponse call(const ports::HttpRequest& request);

  CoreLoop& loop_;
  AgentHub& hub_;
  const base::ArnFormat arns_;
  WorkerPool workers_;
};

}  // namespace cotenant::server
