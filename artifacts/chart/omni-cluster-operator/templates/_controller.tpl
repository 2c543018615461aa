{{/* The Deployment of omni-controller that serves a namespace. Call with (dict "root" $ "serves" <namespace, or "" for all>). */}}
{{- define "omni.controller" -}}
{{- $settings := .root.Values.controller -}}
{{- $certificate := include "omni.metricsSecret" .root -}}
{{- $selector := include "omni.selector" (dict "name" "omni-controller" "serves" (include "omni.controllerServes" .)) -}}
{{- $labels := include "omni.labels" (dict "root" .root "name" "omni-controller" "serves" (include "omni.controllerServes" .)) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "omni.controllerName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  # One works, the others wait for its lease.
  replicas: {{ $settings.replicas }}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "omni.podLabels" (dict "root" .root "name" "omni-controller" "serves" (include "omni.controllerServes" .) "more" $settings.podLabels) | nindent 8 }}
      annotations:
        {{- merge (dict) ($settings.podAnnotations | default dict) (dict "kubectl.kubernetes.io/default-container" "omni-controller") | toYaml | nindent 8 }}
    spec:
      serviceAccountName: {{ include "omni.controllerAccount" . }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: {{ $settings.terminationGracePeriodSeconds }}
      {{- with .root.Values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "omni.placement" (dict "settings" $settings "selector" $selector "replicas" $settings.replicas) }}
      {{- . | trim | nindent 6 }}
      {{- end }}
      containers:
        - name: omni-controller
          image: {{ include "omni.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command: [/omni-controller]
          args:
            {{- $args := include "omni.controllerArgs" . | trim }}
            {{- include "omni.refuseRepeatedFlags" (dict "path" "controller.extraArgs" "given" $args "extra" $settings.extraArgs) }}
            {{- $args | nindent 12 }}
            {{- range $settings.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- with $settings.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - name: metrics
              containerPort: 8080
              protocol: TCP
            - name: health
              containerPort: {{ $settings.healthProbe.port }}
              protocol: TCP
          {{- include "omni.controllerProbes" $settings.healthProbe | nindent 10 }}
          resources:
            {{- toYaml $settings.resources | nindent 12 }}
          {{- with .root.Values.securityContext }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- if $certificate }}
            - name: metrics-tls
              mountPath: /etc/omni-controller/metrics
              readOnly: true
            {{- end }}
            {{- with $settings.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 256Mi
        {{- with $certificate }}
        # Made by cert-manager or by you; the Pod waits for it.
        - name: metrics-tls
          secret:
            secretName: {{ . }}
            defaultMode: 0440
        {{- end }}
        {{- with $settings.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{- define "omni.controllerArgs" -}}
{{- if .serves }}
- --namespace={{ .serves }}
{{- else }}
- --all-namespaces
- --leader-election-namespace={{ .root.Release.Namespace }}
{{- end }}
{{- include "omni.deletionArgs" . }}
{{- with include "omni.exportNamespaces" . | fromJsonArray }}
- --export-namespaces={{ join "," . }}
{{- end }}
{{- if not .root.Values.fleet.rollout }}
- --rollouts=false
{{- end }}
- --leader-elect=true
- --metrics-bind-address=:8080
- --metrics-secure={{ .root.Values.controller.metrics.secure }}
{{- if include "omni.metricsSecret" .root }}
- --metrics-cert-path=/etc/omni-controller/metrics
{{- end }}
- --health-probe-bind-address=:{{ .root.Values.controller.healthProbe.port }}
{{- with .root.Values.controller.deniedNetworks }}
- {{ printf "--denied-networks=%s" (join "," .) | quote }}
{{- end }}
{{- with .root.Values.controller.allowedNetworks }}
- {{ printf "--allowed-networks=%s" (join "," .) | quote }}
{{- end }}
{{- with include "omni.protectedSecrets" . | fromJsonArray }}
- {{ printf "--protected-secrets=%s" (join "," .) | quote }}
{{- end }}
{{- with .root.Values.managementClusterName }}
- {{ printf "--management-cluster-name=%s" . | quote }}
{{- end }}
{{- with .root.Values.hubID }}
- {{ printf "--hub-id=%s" . | quote }}
{{- end }}
{{- with .root.Values.controller.allowedEndpoints }}
- {{ printf "--omni-allowed-endpoints=%s" (join "," .) | quote }}
{{- end }}
{{- if .root.Values.controller.requireAllowedEndpoint }}
- --require-allowed-endpoint
{{- end }}
{{- end }}

{{/* The flag for a deletion of the namespace that is served, and for what controllers of one namespace leave if another takes the place
     of all. With the release's namespace the controller itself goes. Call with (dict "root" $ "serves" <namespace, or "" for all>). */}}
{{- define "omni.deletionArgs" -}}
{{- if and .root.Values.rbac.create (ne .serves .root.Release.Namespace) }}
- --role-binding={{ include "omni.prefix" .root }}-controller
{{- end }}
{{- end }}

{{/* Secrets that no object may use, as a JSON list: those of this installation, if they are in a namespace that is served.
     Those that cert-manager makes have a label as well; to those of the user's the chart cannot give one. */}}
{{- define "omni.protectedSecrets" -}}
{{- $values := .root.Values -}}
{{- $prefix := include "omni.prefix" .root -}}
{{- $names := list (printf "%s-apiserver-ca" $prefix) (printf "%s-apiserver-tls" $prefix) (printf "%s-controller-metrics-tls" $prefix) -}}
{{- if not $values.certificates.certManager.enabled -}}
{{- $names = list $values.certificates.serving.secretName $values.certificates.metrics.secretName -}}
{{- end -}}
{{- $names = append $names $values.apiserver.encryption.secretName -}}
{{- if not $values.apiserver.etcd.embedded.enabled -}}
{{- $names = append $names $values.apiserver.etcd.external.tlsSecretName -}}
{{- end -}}
{{- range $values.image.pullSecrets -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- $all := list -}}
{{- if or (not .serves) (eq .serves .root.Release.Namespace) -}}
{{- range $names | uniq -}}
{{- if . -}}
{{- $all = append $all (printf "%s/%s" $.root.Release.Namespace .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ concat $all $values.controller.protectedSecrets | uniq | toJson }}
{{- end }}

{{/* Namespaces to which exports of the objects that a controller looks at may be written, as a JSON list. */}}
{{- define "omni.exportNamespaces" -}}
{{ get .root.Values.controller.exportNamespaces (.serves | default "*") | default list | sortAlpha | toJson }}
{{- end }}

{{/* Accounts of all controllers, as the subjects of a binding. */}}
{{- define "omni.controllerSubjects" -}}
{{- range include "omni.namespaces" . | fromJsonArray | default (list "") }}
- kind: ServiceAccount
  name: {{ include "omni.controllerAccount" (dict "root" $ "serves" .) }}
  namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end }}

{{/* The health endpoints answer once the API was found, which may take --start-timeout. */}}
{{- define "omni.controllerProbes" -}}
startupProbe:
  httpGet:
    port: health
    path: /healthz
  {{- include "omni.probeTiming" (dict "of" .startup) | nindent 2 }}
livenessProbe:
  httpGet:
    port: health
    path: /healthz
  {{- include "omni.probeTiming" (dict "of" .liveness) | nindent 2 }}
readinessProbe:
  httpGet:
    port: health
    path: /readyz
  {{- include "omni.probeTiming" (dict "of" .readiness) | nindent 2 }}
{{- end }}
