{{/* Names of objects begin with this: omni, or what nameOverride and fullnameOverride say. The names of the defaults do not
     follow the release's, as there is one installation per cluster. Labels and containers keep their names always: selectors,
     dashboards, alerts and commands of the documentation look for them. */}}
{{- define "omni.prefix" -}}
{{- if or .Values.fullnameOverride .Values.nameOverride }}{{ include "omni.fullname" . }}{{ else }}omni{{ end -}}
{{- end }}

{{/* The same for objects that belong to both programs. 40 characters leave room for the longest ending in a Service's name
     and for the Pods' labels of a StatefulSet. */}}
{{- define "omni.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if not .Values.nameOverride -}}
omni-cluster-operator
{{- else if contains .Values.nameOverride .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* The Deployment of omni-controller that serves a namespace. No name is cut: 45 and 64 characters fit.
     Call with (dict "root" $ "serves" <namespace, or "" for all>), as the others below. */}}
{{- define "omni.controllerName" -}}
{{ include "omni.prefix" .root }}-controller{{ include "omni.controllerSuffix" . }}
{{- end }}

{{- define "omni.controllerSuffix" -}}
{{- if and .serves (ne .serves .root.Release.Namespace) }}-{{ .serves }}{{ end -}}
{{- end }}

{{/* The label that tells Deployments apart. Selectors are immutable, so the Deployment that serves the release's
     namespace keeps it when it serves all; the underscores keep it apart from any namespace. */}}
{{- define "omni.controllerServes" -}}
{{- if or (not .serves) (eq .serves .root.Release.Namespace) }}own_or_all{{ else }}{{ .serves }}{{ end -}}
{{- end }}

{{/* The ServiceAccount of omni-apiserver. */}}
{{- define "omni.apiserverAccount" -}}
{{ .Values.apiserver.serviceAccount.name | default (printf "%s-apiserver" (include "omni.prefix" .)) }}
{{- end }}

{{/* The ServiceAccount of a controller: each has one of its own, so that whoever takes over one controller has the rights of
     one namespace. */}}
{{- define "omni.controllerAccount" -}}
{{ .root.Values.controller.serviceAccount.name | default (printf "%s-controller" (include "omni.prefix" .root)) }}{{ include "omni.controllerSuffix" . }}
{{- end }}

{{/* The Secret with the certificate of omni-apiserver. */}}
{{- define "omni.servingSecret" -}}
{{- if .Values.certificates.certManager.enabled }}{{ include "omni.prefix" . }}-apiserver-tls{{ else }}{{ .Values.certificates.serving.secretName }}{{ end -}}
{{- end }}

{{/* The Secret with the certificate of the controllers' metrics; empty if there is none. */}}
{{- define "omni.metricsSecret" -}}
{{- if not .Values.controller.metrics.secure -}}
{{- else if .Values.certificates.certManager.enabled -}}
{{ include "omni.prefix" . }}-controller-metrics-tls
{{- else -}}
{{ .Values.certificates.metrics.secretName }}
{{- end -}}
{{- end }}
