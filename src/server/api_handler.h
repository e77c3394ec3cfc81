// The HTTP face of the control plane: `POST /` (ECS's JSON 1.1 and cotenant's own calls), `GET
// /healthz` (503 while writes are refused), `GET /metrics`, and the agents' WebSocket at /agent/v1.
//
// Who may talk to it: request_guard.h.
#pragma once

#include "base/ids.h"
#include "ports/http.h"
#include "server/agent_hub.h"
#include "server/api_table.h"
#include "server/metrics.h"
#include "server/request_guard.h"
#include "server/stream_hub.h"
#include "server/worker_pool.h"

namespace cotenant::server {

class ApiHandler final : public ports::HttpHandler {
 public:
  // Guard null: whoever calls from loopback may (tests). `agents` null: no join tokens here.
  ApiHandler(CoreLoop& loop, AgentHub& hub, Metrics& metrics, base::ArnFormat arns,
             const RequestGuard* guard = nullptr, AgentAccess* agents = nullptr);

  void handle(ports::HttpRequest request, ports::HttpResponder respond) override;
  void upgrade(ports::HttpRequest request, ports::HttpUpgradeResponder respond) override;

 private:
  ports::HttpUpgrade answer_upgrade(const ports::HttpRequest& request);
  ports::HttpResponse answer(const ports::HttpRequest& request);
  ports::HttpResponse call(const ports::HttpRequest& request);
  base::Result<ports::HttpResponse> perform(const ports::HttpRequest& request);
  ports::HttpResponse health();

  CoreLoop& loop_;
  AgentHub& hub_;
  Metrics& metrics_;
  const base::ArnFormat arns_;
  const RequestGuard open_guard_;
  const RequestGuard& guard_;
  AgentAccess* const agents_;
  StreamHub streams_;
  WorkerPool workers_;
};

}  // namespace cotenant::server
